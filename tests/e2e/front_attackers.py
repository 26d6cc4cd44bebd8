"""Attacks on the daemon's ports, each a function that does its worst on new connections.

As a program, `front_attackers.py NAME SECONDS GRPC_PORT HTTP_PORT METRICS_PORT` repeats one of them for a time and prints what
it sent, as JSON. It has a process of its own, so that its work takes no time from the clients that are measured, and an
address of its own, because the daemon accounts for each client by its address. The tests (front_attacks_test.py) and
`./dev attacks` run it by attacked()."""

import contextlib
import json
import subprocess
import sys

import attacks_by_frames as by_frames
import attacks_by_heads as by_heads
import attacks_by_http1 as by_http1
import attacks_by_messages as by_messages
from front_attack import MIB, Attack

# What each is refused as: reasons of saccade_front_refusals_total, of which at least one must have counted. None: nothing
# is refused, or in another place than in the front.
ATTACKS = {
    by_frames.ping_flood: "control_frames",
    by_frames.settings_flood: "control_frames",
    by_frames.settings_in_one_frame: "control_frames malformed",
    by_frames.priority_loop: "control_frames",
    by_frames.empty_data: "control_frames",
    by_frames.padding_only: None,
    by_frames.unknown_frames: None,
    by_frames.window_updates: "control_frames",
    by_frames.window_update_of_zero: "malformed",
    by_frames.window_that_overflows: "malformed",
    by_frames.rapid_reset: "resets",
    by_frames.made_to_reset: "resets",
    by_frames.reset_by_wrong_heads: "resets malformed",
    by_frames.streams_without_end: "streams",
    by_frames.data_of_a_past_stream: "control_frames",
    by_frames.empty_data_of_a_past_stream: "control_frames",
    by_frames.heads_of_a_past_stream: "control_frames",
    by_frames.pongs: "control_frames",
    by_heads.continuations: "continuations head_too_large",
    by_heads.empty_continuations: "continuations",
    by_heads.continuations_byte_by_byte: "continuations",
    by_heads.references_to_a_large_field: "head_too_large",
    by_heads.many_fields: "head_too_large",
    by_heads.fields_without_names: "malformed resets",
    by_heads.number_without_end: "malformed continuations",
    by_heads.table_sizes: "malformed head_too_large",
    by_frames.large_frames: "malformed",
    by_frames.garbage: "malformed",
    by_frames.damaged_frames: "malformed control_frames",
    by_frames.answers_byte_by_byte: None,
    by_frames.answers_that_nobody_reads: None,
    by_messages.stream_of_unread_answers: None,
    by_messages.symbols_of_dots: None,
    by_heads.odd_fields: None,
    by_heads.queries_by_reference: None,
    by_messages.bomb_for_health: "body_too_large",
    by_messages.bomb_for_inference: "bytes decompressed_too_large",
    by_messages.empty_blocks: None,
    by_http1.empty_blocks_over_http: None,
    by_messages.bomb_of_empty_inputs: "decompressed_too_large",
    by_messages.short_messages_of_empty_inputs: None,
    by_messages.empty_inputs: None,
    by_messages.unknown_fields: None,
    by_http1.empty_objects_over_http: None,
    by_messages.unfinished_messages: "bytes",
    by_messages.claims: "bytes",
    by_messages.messages_byte_by_byte: "stalled_upload",
    by_messages.volume_that_never_comes: None,
    by_http1.bodies_that_never_come: "bytes",
    by_http1.heads_byte_by_byte: "head_timeout",
    by_heads.half_heads: "head_timeout",
    by_http1.silence: None,
    by_http1.headers_without_end: "head_too_large",
    by_http1.chunks_of_one_byte: "malformed body_too_large head_too_large",
    by_http1.pipeline_that_nobody_reads: None,
    by_http1.bomb_over_http: "bytes decompressed_too_large body_too_large",
    by_heads.commas_in_a_binary_header: None,
    by_heads.references_in_trailers: "head_too_large",
    by_heads.types_that_errors_repeat: None,
    by_http1.chunk_that_is_none_after_a_bomb: "malformed",
    by_messages.small_bombs_at_once: "decompressed_too_large",
    by_messages.shapes_that_errors_repeat: None,
    by_messages.header_that_is_kept: None,
    by_messages.watches_of_the_metrics_port: None,
    by_http1.short_json_at_once: None,
    by_http1.zeros_in_short_json: None,
    # Last, because their many small answers leave free memory in pieces, which others cannot use.
    by_messages.descriptions_that_nobody_reads: "bytes",
    by_messages.long_ids: None,
}
# Seconds of a core that one round may take. Decompression takes some 6 ms a MiB, and a message with tensors may grow to 16 MiB,
# because tensors of zeros do. A round of queries has 256 requests.
DEAR = {by_messages.bomb_of_empty_inputs: 0.15, by_heads.queries_by_reference: 256 * 0.00018}
# Those that are ended by a time limit, which the tests set to a second, and those that send megabytes before anything is refused.
SLOW = {
    by_messages.claims, by_messages.messages_byte_by_byte, by_http1.heads_byte_by_byte, by_heads.half_heads,
    by_messages.unfinished_messages, by_messages.bomb_for_health, by_messages.bomb_for_inference, by_http1.bomb_over_http,
    by_messages.empty_inputs, by_http1.empty_objects_over_http, by_messages.empty_blocks, by_http1.empty_blocks_over_http,
    by_heads.types_that_errors_repeat, by_messages.shapes_that_errors_repeat, by_messages.header_that_is_kept,
}
BY_NAME = {attack.__name__: attack for attack in ATTACKS}
LEAST_SLOW_SECONDS = 1.5

# Flags of the daemon under attack, for which the attacks are made. A client's part of the bytes is half of them: one message of
# 60 MiB fits in, a second does not. Its repository has a model "served", an Identity.
FLAGS = (f"--max-inflight-bytes={128 * MIB}", "--head-timeout-seconds=1", "--idle-timeout-seconds=300",
         "--lame-duck-seconds=0", "--warm-up-seconds=0")
# Memory that an attack may take beyond what the daemon has at rest.
ROOM = 128 * MIB
# A client that sends fewer bytes a second than SLOW_RATE must not use more than this part of a core.
SLOW_RATE, CHEAP_CORES = 100_000, 0.1


def source_of(name):
    return f"127.0.1.{2 + list(BY_NAME).index(name)}"


def seconds_of(attack, seconds):
    """How long an attack lasts if most of them last for `seconds`."""
    return max(seconds, LEAST_SLOW_SECONDS) if attack in SLOW else seconds


@contextlib.contextmanager
def attacked(daemon, name, seconds):
    """Runs an attack beside the block, in a process that it yields. Its output is the report."""
    ports = map(str, (daemon.grpc_port, daemon.http_port, daemon.metrics_port))
    command = [sys.executable, __file__, name, str(seconds), *ports]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def main(name, seconds, *ports):
    attack = Attack(float(seconds), map(int, ports), source_of(name))
    attack.repeat(BY_NAME[name])
    print(json.dumps(attack.report()))


if __name__ == "__main__":
    main(*sys.argv[1:])
