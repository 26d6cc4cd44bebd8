"""The command `saccade prove`."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import pathlib
import sys

from saccade.bulk.failures import BulkError
from saccade.console import address, bounded, token_of
from saccade.prove import ed25519, inputs, recompute
from saccade.prove.failures import ProveError
from saccade.prove.saved import Attestation, Saved, Statement, read, statement_of

EXIT_PROVEN, EXIT_DIFFERS, EXIT_USAGE, EXIT_UNFINISHED = 0, 1, 2, 3
# Members of a statement that are compared between two daemons because they affect the bits of an answer, and their names in findings.
_SAME = (
    ("weights_sha256", "weights"), ("configuration_sha256", "configuration"), ("build", "build"),
    ("instruction_set", "instruction set"), ("precision", "precision"),
)
# Where these differ, equal answers are a proof all the same.
_MAY_DIFFER = ("build", "instruction set", "precision")


@dataclasses.dataclass(frozen=True)
class Finding:
    what: str
    is_fault: bool
    text: str


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saccade prove",
        description="Verifies the signed statement of an answer (saccaded --attest-key), and has a daemon compute the answer again.",
        epilog="Exit codes: 0 the answer is proven, 1 something differs, 2 usage, 3 the proof could not be finished.",
    )
    add = parser.add_argument
    add("answer", type=pathlib.Path, metavar="ANSWER", help="file with the answer: a REST body, a message, or what `saccade detect -o` wrote")
    add("--picture", type=pathlib.Path, action="append", default=[], metavar="FILE",
        help="the file that was sent: picture, video, volume or raw tensor; may be repeated")
    add("--key", type=pathlib.Path, metavar="PUBLIC.pem",
        help="the daemon's public key; without it the signature is verified with the key that the answer itself names, which proves nothing about its origin")
    add("--model", type=pathlib.Path, metavar="DIR", help="the model's folder, which a daemon is started for")
    add("--signature-only", action="store_true", help="verifies the signature, the answer and the files, and computes nothing")
    started = parser.add_argument_group("the daemon that is started for --model")
    started.add_argument("--saccaded", default="saccaded", metavar="PROGRAM", help="(saccaded)")
    started.add_argument("--flag", action="append", default=[], metavar="=--NAME=VALUE",
                         help="further flag of it, such as --flag=--allow-executable-models; may be repeated")
    started.add_argument("--start-seconds", type=bounded(float, 1, 86400), default=300.0, help="how long it may take to load (300)")
    where = parser.add_argument_group("or a daemon that runs, whose model has the parameter attest")
    where.add_argument("--url", type=address(), metavar="HOST:PORT", help="gRPC address")
    where.add_argument("--http-url", type=address(), metavar="HOST:PORT", help="HTTP address, for answers that name tensors (default: port 8000 of the same host)")
    where.add_argument("--token-file", help="file with the token that is sent")
    where.add_argument("--tls", action="store_true", help="connect with TLS")
    where.add_argument("--timeout", type=bounded(float, 0.1, 86400), default=300.0, help="seconds for the call (300)")
    return parser


def _check_signature(attestation: Attestation, statement: Statement, key: pathlib.Path | None) -> list[Finding]:
    trusted = ed25519.read_public_key(key) if key else attestation.public_key
    findings = []
    if not ed25519.verifies(trusted, attestation.statement, attestation.signature):
        said = f"is not one of the statement by the key {ed25519.fingerprint(trusted)}"
        if statement["key_sha256"] != ed25519.fingerprint(trusted):
            said += f"; the statement names the key {statement['key_sha256']}"
        findings.append(Finding("signature", True, said))
    elif key is None:
        text = f"fits the key {ed25519.fingerprint(trusted)}, which came with the answer; give the daemon's with --key"
        findings.append(Finding("signature", False, text))
    else:
        findings.append(Finding("signature", False, f"is by the key {ed25519.fingerprint(trusted)}"))
    return findings


def _check_saved(answer: Saved, statement: Statement) -> list[Finding]:
    """Compares the answer with what its statement says of it."""
    findings = []
    for name, found in (("model", answer.model), ("version", answer.version)):
        if found != statement[name]:
            findings.append(Finding(name, True, f"is {found!r} in the answer, and {statement[name]!r} in the statement"))
    if answer.answer_sha256 != statement["answer_sha256"]:
        text = f"has the SHA-256 {answer.answer_sha256}, and the statement {statement['answer_sha256']}: the answer was changed"
        findings.append(Finding("answer", True, text))
    else:
        findings.append(Finding("answer", False, "is the one that was signed"))
    return findings


def _compare(again: Saved, statement: Statement) -> list[Finding]:
    """Compares the answer that was computed again with the statement."""
    if again.attestation is None:
        raise ProveError("the daemon did not sign its answer; set the parameter attest of its model, and start it with --attest-key")
    other = statement_of(again.attestation)
    is_equal = again.answer_sha256 == statement["answer_sha256"]
    findings = []
    for member, name in _SAME:
        if other[member] != statement[member]:
            is_fault = not (is_equal and name in _MAY_DIFFER)
            findings.append(Finding(name, is_fault, f"is {other[member]} here, and was {statement[member]}"))
    if is_equal:
        findings.append(Finding("computed answer", False, "is the same, bit for bit"))
    else:
        findings.append(Finding("computed answer", True, f"has the SHA-256 {again.answer_sha256}, and the statement {statement['answer_sha256']}"))
    return findings


def _recompute(given: argparse.Namespace, request: inputs.Request, statement: Statement) -> list[Finding]:
    with contextlib.ExitStack() as stack:
        if given.url:
            http_url = given.http_url or f"{given.url.rpartition(':')[0]}:8000"
            target = recompute.Target(given.url, http_url, token_of(given.token_file), given.tls, given.timeout)
        else:
            if given.model.resolve().name != statement["model"]:
                raise ProveError(
                    f"--model {given.model} is a folder of another name than the model '{statement['model']}' that answered; name its folder"
                )
            target = stack.enter_context(
                recompute.serving(given.model, given.saccaded, given.flag, given.start_seconds, given.timeout)
            )
        return _compare(target.ask(request, statement), statement)


def prove(given: argparse.Namespace) -> list[Finding]:
    answer = read(given.answer)
    assert answer.attestation is not None
    statement = statement_of(answer.attestation)
    findings = _check_signature(answer.attestation, statement, given.key) + _check_saved(answer, statement)
    found, problem = (None, "") if given.signature_only and not given.picture else inputs.match(statement, given.picture)
    if problem:
        findings.append(Finding("input", True, problem))
    elif found is not None:
        findings.append(Finding("input", False, "is the one that was sent"))
    if given.signature_only or found is None:
        return findings
    return findings + _recompute(given, inputs.request_of(statement, found), statement)


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.signature_only and (given.model is None) == (given.url is None):
        parser.error("expected one of --model DIR and --url HOST:PORT, or --signature-only")
    try:
        findings = prove(given)
    except BulkError as error:
        print(f"saccade prove: {error}", file=sys.stderr)
        return EXIT_UNFINISHED
    except KeyboardInterrupt:
        print("saccade prove: interrupted", file=sys.stderr)
        return EXIT_UNFINISHED
    for one in findings:
        print(f"{'DIFFERS' if one.is_fault else 'ok':8}{one.what}: {one.text}")
    if any(one.is_fault for one in findings):
        print("not proven")
        return EXIT_DIFFERS
    said = "verified" if given.signature_only else "proven"
    print(said if given.key else f"{said}, but who has signed it is not known: give the daemon's public key with --key")
    return EXIT_PROVEN


if __name__ == "__main__":
    sys.exit(main())
