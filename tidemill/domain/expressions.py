"""JMESPath expressions with limits: parsed once, and evaluated within a budget of steps.

JMESPath cannot call out, but it can grow: `[@, @] | [@, @]` doubles its value with every pipe. Each
visit of a node therefore costs a step, and each value that an expression builds costs as many
steps as it has parts, so that time and memory both end with the budget.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import jmespath
import msgspec
from jmespath import exceptions
from jmespath.functions import TYPES_MAP, Functions
from jmespath.visitor import TreeInterpreter

EXPRESSION_CHARACTERS_MAX = 2_000
EXPRESSION_DEPTH_MAX = 48
EVALUATION_STEPS_MAX = 500_000
CHARACTERS_PER_STEP = 16
VALUE_DEPTH_MAX = 128
COMPILED_MAX = 4_096

_BUILDERS = frozenset({"multi_select_list", "multi_select_dict", "function_expression"})
# What a plain path never has: only such expressions can yield more than is in the data.
_CREATORS = _BUILDERS | {"literal", "expref"}
_SELF = frozenset({"current", "identity"})
_ELEMENT_WISE = frozenset({"projection", "value_projection", "filter_projection", "flatten"})
_CHAINS = frozenset({"subexpression", "index_expression", "pipe"})

Node: TypeAlias = Mapping[str, Any]


class BadExpression(Exception):
    """An expression that does not parse, is too large, or asks for a function that is not there."""


class EvaluationFailed(Exception):
    """An expression that cannot be evaluated over this data, or not within its limits."""


class Compiled(msgspec.Struct, frozen=True):
    """An expression ready for evaluation."""

    text: str
    tree: Node
    creates: bool
    fields: tuple[str, ...] | None  # of a path that names nothing but fields, as most do

    def evaluate(self, data: Any, *, steps_max: int = EVALUATION_STEPS_MAX) -> Any:
        """The value over JSON data, null where nothing is found; EvaluationFailed past a limit."""
        if self.fields is not None and len(self.fields) < steps_max:
            return _walk(self.fields, data)
        interpreter = _MeteredInterpreter(steps_max)
        try:
            value = interpreter.visit(self.tree, data)
            return interpreter.checked(value) if self.creates else value
        except exceptions.JMESPathTypeError as error:
            raise EvaluationFailed(_type_error_text(error)) from error
        except RecursionError as error:
            raise EvaluationFailed("its value is nested too deeply") from error
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise EvaluationFailed(f"cannot be evaluated over this data: {error}") from error


@lru_cache(maxsize=COMPILED_MAX)
def compile_expression(text: str) -> Compiled:
    """Parse an expression, or raise BadExpression with what is wrong and where."""
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise BadExpression(
            f"has {len(text):,} characters, at most {EXPRESSION_CHARACTERS_MAX:,} are allowed"
        )
    tree = _parse(text)
    kinds = set()
    for node, depth in _nodes(tree):
        if depth > EXPRESSION_DEPTH_MAX:
            raise BadExpression(_TOO_DEEP)
        kinds.add(node["type"])
        _check_node(text, node)
    return Compiled(text, tree, not kinds.isdisjoint(_CREATORS), _fields(tree))


def root_names(compiled: Compiled) -> frozenset[str] | None:
    """The fields that an expression reads from the top of its data; None when it may read all."""
    return _roots(compiled.tree)


def _fields(node: Node) -> tuple[str, ...] | None:
    if node["type"] == "field":
        return (node["value"],)
    if node["type"] != "subexpression":
        return None
    parts = [_fields(child) for child in node["children"]]
    return None if None in parts else tuple(name for part in parts for name in part or ())


def _walk(fields: tuple[str, ...], data: Any) -> Any:
    for name in fields:
        if not isinstance(data, dict):
            return None
        data = data.get(name)
    return data


_TOO_DEEP = f"is nested too deeply, at most {EXPRESSION_DEPTH_MAX} levels are allowed"


def _parse(text: str) -> Node:
    try:
        tree: Node = jmespath.compile(text).parsed
    except exceptions.IncompleteExpressionError as error:
        raise BadExpression("is not a JMESPath expression: it ends too early") from error
    except exceptions.LexerError as error:
        position = error.lexer_position
        detail = error.message[:1].lower() + error.message[1:]
        raise BadExpression(_parse_error_text(text, detail, position)) from error
    except exceptions.ParseError as error:
        detail = f"unexpected {str(error.token_value)[:40]!r}"
        if not error.token_value:
            raise BadExpression("is not a JMESPath expression: it ends too early") from error
        raise BadExpression(_parse_error_text(text, detail, error.lex_position)) from error
    except exceptions.EmptyExpressionError as error:
        raise BadExpression("is empty, write a JMESPath expression") from error
    except RecursionError as error:
        raise BadExpression(_TOO_DEEP) from error
    return tree


def _parse_error_text(text: str, detail: str, position: int) -> str:
    hint = ""
    if text[position : position + 1] == "-":
        hint = '; a name with "-" in it is written in double quotes, like "fetch-order".total'
    return f"is not a JMESPath expression: {detail} at character {position + 1}{hint}"


def _check_node(text: str, node: Node) -> None:
    if node["type"] == "function_expression":
        _check_call(text, node)
    if node["type"] == "slice" and node["children"][2] == 0:
        raise BadExpression("has a slice with step 0, which never ends")


def _check_call(text: str, node: Node) -> None:
    name, given = node["value"], len(node["children"])
    known = Functions.FUNCTION_TABLE
    if name not in known:
        call = re.search(rf"\b{name}\s*\(", text)
        place = f" at character {call.start() + 1}" if call else ""
        raise BadExpression(f"calls {name}(){place}, which is not a function of JMESPath")
    signature = known[name]["signature"]
    variadic = bool(signature and signature[-1].get("variadic"))
    if given < len(signature) or (given > len(signature) and not variadic):
        least = "at least " if variadic else ""
        raise BadExpression(
            f"calls {name}() with {_arguments(given)}, it takes {least}{_arguments(len(signature))}"
        )


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _nodes(tree: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth, without recursion."""
    pending: list[tuple[Node, int]] = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        # The children of a slice are numbers.
        if node["type"] != "slice":
            pending.extend((child, depth + 1) for child in node["children"])


def _roots(node: Node) -> frozenset[str] | None:
    kind, children = node["type"], node.get("children", [])
    if kind == "field":
        return frozenset({node["value"]})
    if kind in _SELF:
        return None
    if kind in _CHAINS:
        return _chain_roots(children)
    if kind in _ELEMENT_WISE:
        return _roots(children[0])
    if kind in ("index", "slice", "expref"):
        return frozenset()
    found = [_roots(child) for child in children]
    return None if None in found else frozenset().union(*(names for names in found if names))


def _chain_roots(children: list[Node]) -> frozenset[str] | None:
    """Only the first link of a chain sees the top; `@` as a link leaves the next one there."""
    for child in children:
        if child["type"] not in _SELF:
            return _roots(child)
    return None


class _MeteredInterpreter(TreeInterpreter):
    """Evaluates like JMESPath, and stops when the budget is spent."""

    def __init__(self, steps_max: int) -> None:
        super().__init__()
        self._left = steps_max

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """Every node passes here, also those that functions such as `map` evaluate."""
        self._spend(1)
        value = super().visit(node, *args, **kwargs)
        if node["type"] in _BUILDERS:
            self._weigh(value)
        return value

    def checked(self, value: Any) -> Any:
        """The final value, if JSON can hold it."""
        self._weigh(value, final=True)
        return value

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise EvaluationFailed("takes too many steps: read less data, or do it in a task")

    def _weigh(self, value: Any, *, final: bool = False) -> None:
        pending = [(value, 1)]
        while pending:
            item, depth = pending.pop()
            if depth > VALUE_DEPTH_MAX:
                raise EvaluationFailed("its value is nested too deeply")
            self._spend(1)
            if isinstance(item, str):
                self._spend(len(item) // CHARACTERS_PER_STEP)
            elif isinstance(item, list):
                pending.extend((part, depth + 1) for part in item)
            elif isinstance(item, dict):
                pending.extend((part, depth + 1) for part in item.values())
            elif final:
                _check_scalar(item)


def _check_scalar(value: Any) -> None:
    if value is not None and not isinstance(value, bool | int | float):
        raise EvaluationFailed("its value is an expression (&), which only functions can take")
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationFailed(f"its value holds {value}, which JSON cannot hold")


def _type_error_text(error: exceptions.JMESPathTypeError) -> str:
    expected = " or ".join(error.expected_types).replace("-", " of ")
    given = TYPES_MAP.get(error.actual_type, error.actual_type)  # inside a list it is Python's name
    return f"{error.function_name}() takes {expected}, and was given {given}"


__all__ = [
    "BadExpression",
    "Compiled",
    "EvaluationFailed",
    "compile_expression",
    "root_names",
]
