# SPDX-License-Identifier: BSD-2-Clause
"""An OpenAPI document, and whether an answer is as it says."""

import re

import yaml
from jsonschema import Draft202012Validator, RefResolver

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")

# Headers of nginx and of HTTP itself.
PLAIN_HEADERS = {"server", "date", "content-type", "content-length", "connection", "transfer-encoding"}


class Document:
    def __init__(self, path):
        self.file = yaml.safe_load(path.read_text())

    def resolved(self, node):
        """The node itself, or what its $ref names. Siblings of a $ref are laid over it, as in JSON Schema 2020-12."""
        if "$ref" not in node:
            return node
        target = self.file
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return {**self.resolved(target), **{name: value for name, value in node.items() if name != "$ref"}}

    def operations(self):
        return {(method, path): item[method] for path, item in self.file["paths"].items() for method in METHODS
                if method in item}

    def validate(self, value, schema):
        Draft202012Validator(schema, resolver=RefResolver("", self.file)).validate(value)

    def type_of(self, response):
        """The content type of a response that has a body, else None. There is never a choice."""
        types = list(response.get("content", {}))
        assert len(types) <= 1
        return types[0] if types else None

    def schema_of(self, response):
        return response.get("content", {}).get(self.type_of(response), {}).get("schema")

    def codes_of(self, schema):
        """The error codes that a response may carry; [None] if it carries none."""
        code = self.resolved(schema or {}).get("properties", {}).get("error", {}).get("properties", {}).get("code", {})
        return code.get("enum") or [code.get("const")]

    def documented(self):
        """Every answer of the file, as (method, path, status, code)."""
        return {
            (method, path, status, code)
            for (method, path), operation in self.operations().items()
            for status, response in operation["responses"].items()
            for code in self.codes_of(self.schema_of(self.resolved(response)))
        }

    # --- the file itself

    def assert_is_openapi(self):
        assert re.fullmatch(r"3\.1\.\d", self.file["openapi"])
        assert {"title", "version"} <= set(self.file["info"])
        for (method, path), operation in self.operations().items():
            assert operation["summary"] and operation["responses"], (method, path)
            named = {self.resolved(parameter)["name"] for parameter in self.file["paths"][path].get("parameters", [])}
            assert set(re.findall(r"{(\w+)}", path)) <= named
            for status, response in operation["responses"].items():
                assert re.fullmatch(r"[1-5]\d\d|default", status)
                assert self.resolved(response)["description"]
        ids = [operation["operationId"] for operation in self.operations().values() if "operationId" in operation]
        assert len(ids) == len(set(ids))

    def assert_references_lead_somewhere_and_all_is_used(self):
        references = {node["$ref"] for node in nodes(self.file) if isinstance(node, dict) and "$ref" in node}
        for reference in references:
            self.resolved({"$ref": reference})
        parts = {f"#/components/{kind}/{name}" for kind, named in self.file["components"].items() for name in named
                 if kind != "securitySchemes"}
        assert references == parts

    def assert_examples_fit(self):
        for node in nodes(self.file):
            if isinstance(node, dict) and "schema" in node:
                Draft202012Validator.check_schema(node["schema"])
                for example in node.get("examples", {}).values():
                    self.validate(example["value"], node["schema"])
        for schema in self.file["components"]["schemas"].values():
            Draft202012Validator.check_schema(schema)

    # --- an answer

    def assert_as_documented(self, operation, answer):
        responses = operation["responses"]
        assert str(answer.status) in responses, f"{answer.status} is not documented"
        response = self.resolved(responses[str(answer.status)])
        self._assert_headers(response, answer)
        schema = self.schema_of(response)
        if schema is None:
            assert answer.body == b""
            return
        assert answer.header("content-type") == self.type_of(response)
        if self.resolved(schema).get("type") == "string":
            assert answer.body
            return
        self.validate(answer.json(), schema)
        self._assert_fields(answer.json(), schema)

    def _assert_headers(self, response, answer):
        headers = {name.lower(): self.resolved(header) for name, header in response.get("headers", {}).items()}
        for name, header in headers.items():
            assert not header.get("required") or answer.header(name) is not None, f"no {name}"
        for name, value in answer.headers:
            assert name in headers or name in PLAIN_HEADERS, f"{name} is not documented"
            if name in headers:
                self.validate(value, headers[name]["schema"])

    def _assert_fields(self, value, schema):
        assert set(value) <= set(self.resolved(schema)["properties"])
        if isinstance(value.get("error"), dict):
            error = self.file["components"]["schemas"]["Error"]["properties"]["error"]
            assert set(value["error"]) <= set(error["properties"])


def nodes(node):
    yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(child)
