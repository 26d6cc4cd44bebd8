"""Reads manifests and checks them against schemas. Each text is parsed by libyaml and each schema loaded once, because the
variants of the chart make hundreds of resources, most of them equal."""

import functools
import importlib.resources
import json
import re

import jsonschema
import kubernetes_validate
import referencing
import yaml

from custom_resources import SCHEMAS

FOLDER = importlib.resources.files(kubernetes_validate) / "kubernetes-json-schema"


def parse(text):
    return yaml.load(text, yaml.CSafeLoader)


def parse_all(text):
    """The documents of a text, without empty ones."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


@functools.cache
def _load(version, name):
    """A schema of a release of Kubernetes such as "1.37", which rejects fields that it does not have."""
    (folder,) = [one for one in FOLDER.iterdir() if re.fullmatch(rf"v{re.escape(version)}\.\d+-local-strict", one.name)]
    return json.loads((folder / f"{name}.json").read_text())


@functools.cache
def _definitions(version):
    return (referencing.Resource.from_contents(_load(version, "_definitions")) @ referencing.Registry()).crawl()


@functools.cache
def _validator(kind, api_version, version):
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    schema = _load(version, f"{kind.lower()}-{group}")
    registry = referencing.Resource.from_contents(schema) @ _definitions(version)
    return jsonschema.Draft202012Validator(schema, registry=registry.crawl())


@functools.cache
def _custom_validator(kind):
    return jsonschema.validators.validator_for(SCHEMAS[kind])(SCHEMAS[kind])


@functools.cache
def _check(text, version):
    """Does not return if the resource is wrong, so that only right ones are remembered."""
    resource = json.loads(text)
    kind = resource["kind"]
    validator = _custom_validator(kind) if kind in SCHEMAS else _validator(kind, resource["apiVersion"], version)
    validator.validate(resource)


def check(resource, version=None):
    """Raises jsonschema.ValidationError if the resource does not fit the schema of its kind in this release of Kubernetes,
    which has none for custom resources."""
    _check(json.dumps(resource, sort_keys=True), None if resource["kind"] in SCHEMAS else version)
