"""Tests gRPC clients of other languages: Ruby's, Go's and grpcurl. `./dev setup tests` installs them."""

import os
import pathlib
import subprocess
import sys

import numpy
import pytest

from harness import DEADLINE_SECONDS, Daemon
from messages import infer_request, message
from tiny_models import Identity, write_model

SHAPE = (1, 1, 1, 1, 4)
VOLUME = numpy.arange(4, dtype=numpy.float32).tobytes()
INFER = "inference.GRPCInferenceService/ModelInfer"

# Both clients read a request from stdin, send it many times, and write the last answer to stdout. Then they ask for a model that
# does not exist, and write the status code to stderr.
RUBY = """
require 'grpc'
stub = GRPC::ClientStub.new(ARGV[0], :this_channel_is_insecure)
bytes = ->(given) { given }
request = STDIN.binmode.read
answer = nil
10.times { answer = stub.request_response('/' + ARGV[1], request, bytes, bytes, deadline: Time.now + 30) }
STDOUT.binmode.write(answer)
begin
  stub.request_response('/' + ARGV[1], request.sub('served', 'nobody'), bytes, bytes, deadline: Time.now + 30)
rescue GRPC::BadStatus => error
  STDERR.puts("code #{error.code}")
end
"""

GO = """
package main

import (
	"bytes"
	"context"
	"fmt"
	"io/ioutil"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

type raw struct{}

func (raw) Marshal(v interface{}) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error { *v.(*[]byte) = append([]byte(nil), data...); return nil }
func (raw) Name() string                               { return "proto" }
func (raw) String() string                             { return "proto" }

func main() {
	connection, err := grpc.Dial(os.Args[1], grpc.WithInsecure(), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		panic(err)
	}
	request, _ := ioutil.ReadAll(os.Stdin)
	var answer []byte
	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	// With each answer comes a PING, by which the client measures the connection.
	for i := 0; i < 2000; i++ {
		if err := connection.Invoke(within, "/"+os.Args[2], &request, &answer); err != nil {
			panic(err)
		}
	}
	os.Stdout.Write(answer)
	wrong := bytes.Replace(request, []byte("served"), []byte("nobody"), 1)
	err = connection.Invoke(within, "/"+os.Args[2], &wrong, &answer)
	fmt.Fprintf(os.Stderr, "code %d\\n", status.Code(err))
}
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    root = tmp_path_factory.mktemp("foreign")
    write_model(root, "served", Identity(), max_batch_size=4)
    with Daemon(root, "--warm-up-seconds=0", log_folder=tmp_path_factory.mktemp("log")) as running:
        yield running.await_ready()


def is_answered(daemon, command, **environment):
    request = infer_request("served", SHAPE, VOLUME).SerializeToString()
    done = subprocess.run([*map(str, command), daemon.grpc_address, INFER], input=request, capture_output=True, timeout=240,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr.decode()
    assert message("inference.ModelInferResponse").FromString(done.stdout).raw_output_contents[0] == VOLUME
    assert "code 5" in done.stderr.decode()


def test_ruby(daemon, tmp_path):
    (tmp_path / "client.rb").write_text(RUBY)
    is_answered(daemon, ["ruby", tmp_path / "client.rb"])


def test_go(daemon, tmp_path):
    (tmp_path / "client.go").write_text(GO)
    packages = os.environ.get("GOPATH", "/usr/share/gocode")
    is_answered(daemon, ["go", "run", tmp_path / "client.go"], GO111MODULE="off", GOPATH=packages,
                GOCACHE=str(tmp_path / "cache"), GOFLAGS="")


def test_grpcurl(daemon):
    """It knows the messages from the daemon's reflection."""
    program = pathlib.Path(sys.executable).with_name("grpcurl")

    def grpcurl(*arguments):
        done = subprocess.run([program, "-plaintext", *arguments], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "saccade.v1.Vision" in grpcurl(daemon.grpc_address, "list").split()
    assert "rpc ModelInfer" in grpcurl(daemon.grpc_address, "describe", "inference.GRPCInferenceService")
    assert '"served"' in grpcurl(daemon.grpc_address, "saccade.v1.Vision/ListModels")
    assert '"SERVING"' in grpcurl(daemon.grpc_address, "grpc.health.v1.Health/Check")
