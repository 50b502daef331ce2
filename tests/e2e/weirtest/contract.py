# SPDX-License-Identifier: BSD-2-Clause
"""What an answer must look like, field by field and type by type."""

COUNT, TEXT, FLAG = "a whole number", "a text", "true or false"


def is_kind(value, kind):
    if kind == COUNT:
        return type(value) is int and value >= 0
    if kind == TEXT:
        return type(value) is str and value != ""
    return type(value) is bool if kind == FLAG else type(value) is type(kind) and value == kind


def assert_fields(answer, fields, status=200):
    """`fields` is {name: a kind, the value itself, or fields again}: these and no others."""
    assert answer.status == status, (answer.status, answer.body)
    assert answer.header("content-type") == "application/json"
    assert answer.header("cache-control") == "no-store"
    assert answer.header("x-request-id")
    return assert_object(answer.json(), fields)


def assert_object(value, fields):
    assert type(value) is dict and set(value) == set(fields), (value, set(fields))
    for name, kind in fields.items():
        if type(kind) is dict:
            assert_object(value[name], kind)
        else:
            assert is_kind(value[name], kind), (name, value[name], kind)
    return value


def assert_flat_error(answer, status, message=None):
    """{"error": "text"} and nothing else."""
    assert_fields(answer, {"error": message or TEXT}, status)
