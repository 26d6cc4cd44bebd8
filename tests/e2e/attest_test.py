"""Answers with signed statements: by every protocol, what `saccade prove` finds out about them, and which keys are taken."""

import base64
import dataclasses
import hashlib
import json
import pathlib
import re
import shutil
import subprocess

import pytest
import safetensors.torch

import captures
import pictures
from captures import PICTURE, post
from harness import DEADLINE_SECONDS, binary, run_to_end
from messages import infer_request, message, predict_request, stream
from tiny_models import tiny_detector, tiny_segmenter, write_model

OTHER_PICTURE = pictures.encoded(pictures.pixels(2, 131, 75))
ATTEST = {"attest": "true"}


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@dataclasses.dataclass
class Keys:
    private: pathlib.Path
    public: pathlib.Path


def make_keys(folder, name="key"):
    keys = Keys(folder / f"{name}.pem", folder / f"{name}.public.pem")
    openssl("genpkey", "-algorithm", "ed25519", "-out", keys.private)
    openssl("pkey", "-in", keys.private, "-pubout", "-out", keys.public)
    keys.private.chmod(0o600)
    return keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def attested(tmp_path_factory):
    """A repository: two models that sign, one that does not."""
    root = tmp_path_factory.mktemp("attested")
    write_model(root, "detector", tiny_detector(), max_batch_size=4, parameters=ATTEST)
    write_model(root, "segmenter", tiny_segmenter(), max_batch_size=4, parameters=ATTEST)
    (root / "segmenter" / "config.pbtxt").open("a").write("response_cache { enable: true }\n")
    write_model(root, "silent", tiny_detector(), max_batch_size=4)
    return root


FLAGS = ("--warm-up-seconds=0", "--lame-duck-seconds=0", "--cache-config=local,size=1000000")


@pytest.fixture(scope="module")
def signing(attested, keys, tmp_path_factory):
    from harness import Daemon

    with Daemon(attested, f"--attest-key={keys.private}", *FLAGS, log_folder=tmp_path_factory.mktemp("log")) as daemon:
        yield daemon.await_ready()


@pytest.fixture
def prove(saccade, capsys):
    """prove(*arguments) -> (exit code, its output)."""
    from saccade.prove.command import main

    def run(*arguments):
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def predict(daemon, **fields):
    with daemon.vision() as vision:
        fields = {"model": "detector", "encoded": PICTURE, **fields}
        fields = {name: value for name, value in fields.items() if value is not None}
        return vision.predict(predict_request(**fields), timeout=DEADLINE_SECONDS)


def infer(daemon):
    with daemon.inference() as inference:
        return inference.model_infer(captures.bytes_request(), timeout=DEADLINE_SECONDS)


def statement_of(answer):
    return json.loads(answer.attestation.statement)


def saved(tmp_path, content, name="answer"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


@pytest.fixture
def picture_file(tmp_path):
    return saved(tmp_path, PICTURE, "sent.png")


def url_of(daemon):
    return ["--url", daemon.grpc_address, "--http-url", f"127.0.0.1:{daemon.http_port}"]


def every_answer(daemon):
    """Name -> the answer's bytes, by every protocol."""
    answers = {"grpc": predict(daemon, detection={"top_k": 3}).SerializeToString(), "tensors": infer(daemon).SerializeToString()}
    with daemon.channel() as channel:
        vision = stream(channel, "saccade.v1.Vision", "PredictStream")
        sent = message("saccade.v1.PredictStreamRequest")(request=predict_request(model="detector", encoded=PICTURE))
        answers["stream"] = next(iter(vision(iter([sent]), timeout=DEADLINE_SECONDS))).answer.SerializeToString()
        named = stream(channel, "inference.GRPCInferenceService", "ModelStreamInfer")
        found = next(iter(named(iter([captures.bytes_request()]), timeout=DEADLINE_SECONDS)))
        answers["tensors in a stream"] = found.infer_response.SerializeToString()
    body = json.dumps({"model": "detector", "encoded": base64.b64encode(PICTURE).decode()}).encode()
    answers["json"] = post(daemon, "/v1/predict", body, {"Content-Type": "application/json"})[1]
    answers["file"] = post(daemon, "/v1/predict/detector?score_threshold=0.2", PICTURE, {"Content-Type": "image/png"})[1]
    inputs = [{"name": "image", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(PICTURE) + 4}}]
    for name, binary_output in (("tensors as json", False), ("tensors in binary", True)):
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": binary_output}}).encode()
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}
        raw = head + len(PICTURE).to_bytes(4, "little") + PICTURE
        answers[name] = post(daemon, "/v2/models/segmenter/infer", raw, headers)[1]
    return answers


def test_answers_of_every_protocol_are_proven(signing, keys, attested, prove, picture_file, tmp_path):
    for name, content in every_answer(signing).items():
        answer = saved(tmp_path, content)
        code, said = prove(answer, "--picture", picture_file, "--key", keys.public, *url_of(signing))
        assert code == 0 and said.endswith("proven\n") and "bit for bit" in said, (name, said, content[:3000])
    # The last by a daemon of its own.
    own = ["--model", attested / "segmenter", "--saccaded", binary("saccaded")]
    code, said = prove(answer, "--picture", picture_file, "--key", keys.public, *own)
    assert code == 0 and "DIFFERS" not in said, said


def test_the_statement_says_what_the_daemon_says(signing, keys, tmp_path):
    answer = predict(signing, detection={"top_k": 3, "score_threshold": 0.25}, request_id="mine", priority=4)
    statement = statement_of(answer)
    with signing.vision() as vision:
        model = vision.get_model(captures.message("saccade.v1.GetModelRequest")(model="detector"), timeout=DEADLINE_SECONDS)
    der = subprocess.run(["openssl", "pkey", "-in", keys.private, "-pubout", "-outform", "DER"], capture_output=True, check=True)
    fingerprint = hashlib.sha256(der.stdout).hexdigest()
    assert statement["key_sha256"] == model.attestation_key_sha256 == fingerprint
    assert answer.attestation.public_key == der.stdout[-32:]
    signing.await_log(fingerprint)
    for member in ("weights_sha256", "configuration_sha256", "instruction_set", "precision"):
        assert statement[member] == getattr(model, member) and statement[member], member
    assert re.fullmatch(r"saccaded [0-9.]+, code [0-9a-f]{64}, LibTorch [0-9.]+", statement["build"])
    assert statement["request"] == {"encoded": "", "detection": {"score_threshold": 0.25, "top_k": 3}}
    assert statement["inputs_sha256"] == [hashlib.sha256(PICTURE).hexdigest()]
    # By another implementation.
    for name, content in (("statement", answer.attestation.statement.encode()), ("signature", answer.attestation.signature)):
        (tmp_path / name).write_bytes(content)
    openssl("pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", keys.public, "-in", tmp_path / "statement",
            "-sigfile", tmp_path / "signature")


def test_models_without_the_parameter_sign_nothing(signing):
    assert not predict(signing, model="silent").HasField("attestation")
    with signing.vision() as vision:
        model = vision.get_model(captures.message("saccade.v1.GetModelRequest")(model="silent"), timeout=DEADLINE_SECONDS)
    assert model.attestation_key_sha256 == "" and re.fullmatch("[0-9a-f]{64}", model.configuration_sha256)


def test_cached_answers_have_statements_of_their_own(signing, keys, prove, picture_file, tmp_path):
    """Equal requests are answered from the cache, and each names its own request and time."""
    answers = [infer(signing) for _ in range(3)]
    assert signing.metrics().value("nv_cache_num_hits_per_model", model="segmenter", version="1") >= 2
    statements = [json.loads(one.parameters["attestation"].string_param) for one in answers]
    assert len({one["time"] for one in statements}) == 3
    assert len({one["answer_sha256"] for one in statements}) == 1
    for answer in answers:
        code, said = prove(saved(tmp_path, answer), "--picture", picture_file, "--key", keys.public, *url_of(signing))
        assert code == 0, said


def test_pixels_and_several_inputs_are_proven(signing, keys, prove, tmp_path):
    pixels = pictures.pixels(3, 131, 75)
    raw = {"width": 131, "height": 75, "order": 1, "pixels": pixels.tobytes()}
    region = {"x": 10, "y": 5, "width": 100, "height": 60}
    options = {"score_threshold": 0.1, "classes": [1, 2, 3, 4], "masks": 4}
    answer = saved(tmp_path, predict(signing, encoded=None, raw=raw, region=region, detection=options))
    file = saved(tmp_path, pixels.tobytes(), "pixels")
    code, said = prove(answer, "--picture", file, "--key", keys.public, *url_of(signing))
    assert code == 0, said
    with signing.inference() as inference:
        element = captures.bytes_request().raw_input_contents[0]
        other = len(OTHER_PICTURE).to_bytes(4, "little") + OTHER_PICTURE
        asked = infer_request("segmenter", [2], element + other, datatype="BYTES")
        answer = saved(tmp_path, inference.model_infer(asked, timeout=DEADLINE_SECONDS))
    code, said = prove(answer, "--picture", saved(tmp_path, element + other, "tensor"), "--key", keys.public, *url_of(signing))
    assert code == 0, said


def flip(data, at):
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def change_result(answer, _other):
    answer.detections.detections[0].box.x_min += 1e-4


def change_model(answer, _other):
    answer.model = "other"


def change_version(answer, _other):
    answer.version = 2


def change_size(answer, _other):
    answer.picture_width += 1


def remove_detection(answer, _other):
    del answer.detections.detections[-1]


def swap_signature(answer, other):
    answer.attestation.signature = other.attestation.signature


def swap_statement(answer, other):
    answer.attestation.CopyFrom(other.attestation)


def flip_signature(answer, _other):
    answer.attestation.signature = flip(answer.attestation.signature, 40)


def cut_signature(answer, _other):
    answer.attestation.signature = answer.attestation.signature[:-1]


def change_statement(answer, _other):
    answer.attestation.statement = answer.attestation.statement.replace('"version":1', '"version":2')


TAMPERINGS = [
    (change_result, "answer"), (remove_detection, "answer"), (change_size, "answer"), (change_model, "model"),
    (change_version, "version"), (swap_signature, "signature"), (swap_statement, "answer"), (flip_signature, "signature"),
    (cut_signature, "signature"), (change_statement, "signature"),
]


@pytest.mark.parametrize("tamper, found", TAMPERINGS, ids=[one.__name__ for one, _ in TAMPERINGS])
def test_tampering_is_found(signing, keys, prove, picture_file, tmp_path, tamper, found):
    answer, other = predict(signing), predict(signing, detection={"top_k": 1})
    assert len(answer.detections.detections) > 1
    assert prove(saved(tmp_path, answer), "--picture", picture_file, "--key", keys.public, "--signature-only")[0] == 0
    tamper(answer, other)
    code, said = prove(saved(tmp_path, answer), "--picture", picture_file, "--key", keys.public, "--signature-only")
    assert code == 1 and re.search(f"^DIFFERS {found}:", said, re.MULTILINE) and said.endswith("not proven\n"), said


def test_every_bit_of_a_small_answer_counts(signing, keys, prove, saccade, tmp_path):
    """Of the bytes as they are saved: whatever is changed is found, cannot be read, or is beside what is signed."""
    from saccade.prove import saved as reading
    from saccade.prove.command import main

    answer = predict(signing, detection={"top_k": 1, "masks": 2})
    for field in ("timings", "batch_size", "request_id"):
        answer.ClearField(field)
    content = answer.SerializeToString()
    path = tmp_path / "answer"
    for bit in range(len(content) * 8):
        at, value = divmod(bit, 8)
        changed = bytearray(content)
        changed[at] ^= 1 << value
        path.write_bytes(changed)
        code = main([str(path), "--key", str(keys.public), "--signature-only"])
        if code == 0:
            # The public key that travels with the answer is not used, and unsigned fields may appear.
            read = reading.read(path)
            assert read.answer_sha256 == json.loads(answer.attestation.statement)["answer_sha256"]
            assert read.attestation.statement == answer.attestation.statement.encode()


def test_another_picture_is_found(signing, keys, prove, tmp_path, picture_file):
    answer = saved(tmp_path, predict(signing))
    other = saved(tmp_path, flip(PICTURE, len(PICTURE) // 2), "other.png")
    code, said = prove(answer, "--picture", other, "--key", keys.public, *url_of(signing))
    assert code == 1 and "DIFFERS input: the input that was sent has the SHA-256" in said, said
    code, said = prove(answer, "--picture", picture_file, "--picture", other, "--key", keys.public, *url_of(signing))
    assert code == 1 and "was not part of the request" in said, said
    code, said = prove(answer, "--key", keys.public, *url_of(signing))
    assert code == 1 and "none was given" in said, said


def test_another_key_is_found(signing, keys, prove, tmp_path, picture_file):
    answer = saved(tmp_path, predict(signing))
    other = make_keys(tmp_path, "other")
    code, said = prove(answer, "--picture", picture_file, "--key", other.public, "--signature-only")
    assert code == 1 and "DIFFERS signature" in said and "the statement names the key" in said, said
    code, said = prove(answer, "--picture", picture_file, "--signature-only")
    assert code == 0 and "which came with the answer" in said and "not known" in said, said


def copied(attested, tmp_path, change):
    folder = tmp_path / "repository"
    shutil.copytree(attested, folder)
    change(folder / "detector")
    return folder / "detector"


def other_weights(folder):
    path = folder / "1" / "weights.safetensors"
    state = safetensors.torch.load_file(path)
    for name in state:
        if name.endswith("weight"):
            state[name] = state[name] * 1.01
    safetensors.torch.save_file(state, path)


def other_labels(folder):
    lines = (folder / "labels.txt").read_text().splitlines()
    (folder / "labels.txt").write_text("\n".join(reversed(lines)) + "\n")


def other_version(folder):
    (folder / "1").rename(folder / "2")


@pytest.mark.parametrize("change, code, found", [
    (other_weights, 1, ["DIFFERS weights", "DIFFERS computed answer"]),
    (other_labels, 1, ["DIFFERS configuration", "DIFFERS computed answer"]),
    (other_version, 3, ["version 1"]),
], ids=["weights", "labels", "version"])
def test_another_model_is_found(signing, keys, attested, prove, tmp_path, picture_file, change, code, found):
    answer = saved(tmp_path, predict(signing))
    own = ["--model", copied(attested, tmp_path, change), "--saccaded", binary("saccaded")]
    ended, said = prove(answer, "--picture", picture_file, "--key", keys.public, *own)
    assert ended == code and all(one in said for one in found), said


def test_what_cannot_be_proven_says_why(signing, keys, attested, prove, tmp_path, picture_file):
    answer = saved(tmp_path, predict(signing))
    cases = [
        ([saved(tmp_path, predict(signing, model="silent"), "silent")], "carries no statement"),
        ([saved(tmp_path, b"{", "cut.json")], "cannot be read"),
        ([saved(tmp_path, b"\xff\xff", "noise")], "cannot be read"),
        ([tmp_path / "missing"], "No such file"),
        ([answer, "--model", attested / "segmenter"], "another name than the model 'detector'"),
        ([answer, "--model", attested / "detector", "--saccaded", "no-such-program"], "not in PATH"),
        ([answer, "--url", "127.0.0.1:1"], "does not answer"),
    ]
    for arguments, text in cases:
        where = [] if len(arguments) > 1 else ["--signature-only"]
        code, said = prove(*arguments, *where, "--picture", picture_file, "--key", keys.public)
        assert code == 3 and text in said, (arguments, said)
    for name, content in (("private", keys.private.read_text()), ("empty", ""), ("cut", keys.public.read_text()[:40])):
        code, said = prove(answer, "--key", saved(tmp_path, content.encode(), name), "--signature-only")
        assert code == 3 and "expected an Ed25519 public key" in said, said


def rsa(path):
    openssl("genpkey", "-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:1024", "-out", path)


def ed25519(path):
    openssl("genpkey", "-algorithm", "ed25519", "-out", path)


def open_to_others(path):
    ed25519(path)
    path.chmod(0o644)


def cut(path):
    ed25519(path)
    path.write_text(path.read_text()[:70])


def public(path):
    openssl("pkey", "-in", make_keys(path.parent, "other").private, "-pubout", "-out", path)


def with_passphrase(path):
    openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:secret", "-out", path)


def folder(path):
    path.mkdir()


@pytest.mark.parametrize("make, problem", [
    (rsa, "of another type than Ed25519"), (open_to_others, "open to other users"), (cut, "holds no readable private key"),
    (public, "holds no readable private key"), (with_passphrase, "protected by a passphrase"), (folder, "not a regular file"),
    (lambda path: None, "cannot be read"),
], ids=["rsa", "open", "cut", "public", "passphrase", "folder", "missing"])
def test_other_key_files_are_refused(attested, tmp_path, make, problem):
    key = tmp_path / "key.pem"
    make(key)
    if key.is_file() and make is not open_to_others:
        key.chmod(0o600)
    ended = run_to_end(f"--model-repository={attested}", f"--attest-key={key}")
    assert ended.returncode == 2 and problem in ended.stderr + ended.stdout, ended.stderr + ended.stdout
    assert "PRIVATE" not in ended.stderr + ended.stdout


def test_a_model_that_signs_needs_a_key(attested):
    ports = ("--host=127.0.0.1", "--grpc-port=0", "--http-port=0", "--metrics-port=0")
    ended = run_to_end(f"--model-repository={attested}", "--model-control-mode=explicit", "--load-model=detector", *ports)
    assert ended.returncode != 0 and "--attest-key" in ended.stderr and "no key to sign answers with" in ended.stderr
    checked = run_to_end(f"--model-repository={attested}", "--check-config")
    assert checked.returncode != 0 and "no key to sign answers with" in checked.stdout + checked.stderr


def test_the_command_and_the_client_save_what_is_proven(signing, keys, prove, saccade, picture_file, tmp_path):
    line = [binary("saccade"), "detect", "--url", signing.grpc_address, "--model", "detector", "-o", tmp_path / "out", picture_file]
    ended = subprocess.run([str(one) for one in line], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert ended.returncode == 0, ended.stderr
    written = tmp_path / "out" / "sent.detect.attested"
    assert str(written) in ended.stderr
    with saccade.Client(signing.grpc_address) as client:
        by_python = saved(tmp_path, client.detect("detector", PICTURE).attested, "by_python")
        assert client.detect("silent", PICTURE).attested == b""
    for answer in (written, by_python):
        code, said = prove(answer, "--picture", picture_file, "--key", keys.public, *url_of(signing))
        assert code == 0, said
