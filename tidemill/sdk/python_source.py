"""Workflows written in Python: found in a file or a module, which is executed for it."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tidemill.domain.errors import InvalidWorkflow, Problem
from tidemill.domain.problems import did_you_mean, listed, show
from tidemill.domain.workflow import Workflow
from tidemill.sdk.authored import AuthoredWorkflow

_MODULE_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]?\w*")
_FILE_PATH = re.compile(r"(?P<file>.*\.py)(:(?P<attribute>\w*))?")


_NONE = "the module has no workflow: decorate a function with @workflow"


class PythonSource(NamedTuple):
    """A definition, and what a worker imports to run it: first where it came from."""

    definition: Workflow | dict[str, Any]
    imports: tuple[str, ...]


def names_python(name: str) -> bool:
    """Whether a name means `flow.py`, `flow.py:attribute` or `module:attribute`."""
    return bool(_FILE_PATH.fullmatch(name) or _MODULE_PATH.fullmatch(name))


def load_python(name: str) -> PythonSource:
    """The workflow that a Python path names. Without an attribute the module must have just one."""
    module, attribute, imported = _opened(name)
    definition = _definition(module, attribute, name)
    return PythonSource(definition, (imported, *_further_imports(definition, module)))


def load_all_python(name: str) -> list[PythonSource]:
    """Every workflow of a module, or the one that is named."""
    module, attribute, imported = _opened(name)
    found = [_definition(module, attribute, name)] if attribute else []
    found = found or [_described(each) for each in _workflows(module).values()]
    if not found:
        raise _refuse(name, _NONE, "NOT_FOUND")
    return [PythonSource(each, (imported, *_further_imports(each, module))) for each in found]


def _opened(name: str) -> tuple[ModuleType, str | None, str]:
    """The module, the attribute wanted of it, and the name under which workers import it."""
    file = _FILE_PATH.fullmatch(name)
    if file:
        path = Path(file["file"]).resolve()
        return _imported_file(path, name), file["attribute"], str(path)
    module_name, _, attribute = name.partition(":")
    return _imported_module(module_name, name), attribute, module_name


def _further_imports(definition: Workflow | dict[str, Any], module: ModuleType) -> Iterator[str]:
    """Modules from which a decorated workflow has imported its tasks."""
    tasks = definition.tasks if isinstance(definition, Workflow) else ()
    named = (str(spec.params.get("function", "")) for spec in tasks if spec.executor == "python")
    homes = dict.fromkeys(function.partition(":")[0] for function in named)
    yield from (home for home in homes if home and home != module.__name__)


def _refuse(name: str, message: str, code: str, line: int | None = None) -> InvalidWorkflow:
    return InvalidWorkflow([Problem(path=name, message=message, code=code, line=line)])


def _imported_module(module_name: str, name: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules beside the user, as `python -m` finds them
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _import_failed(name, error, None) from error
        text = f"there is no module {module_name}: run from its folder, or install it"
        raise _refuse(name, text, "NOT_FOUND") from error
    except Exception as error:
        raise _import_failed(name, error, None) from error


def _imported_file(path: Path, name: str) -> ModuleType:
    """Under the name that a worker gives it, so that functions are called the same in both."""
    if not path.is_file():
        text = "there is no such file, look at the spelling and the folder"
        raise _refuse(name, text, "NOT_FOUND")
    present = sys.modules.get(path.stem)
    if present is not None and getattr(present, "__file__", None) == str(path):
        return present
    if present is not None or path.stem in sys.stdlib_module_names:
        raise _refuse(name, f"the module name {show(path.stem)} is taken, rename it", "BAD_IMPORT")
    return _executed(path, name)


def _executed(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None, "a .py file always has a loader"
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # so that the file can import its neighbours
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[path.stem]
        raise _import_failed(name, error, _line_in(path, error)) from error
    return module


def _import_failed(name: str, error: Exception, line: int | None) -> InvalidWorkflow:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    hint = package_hint(name.partition(".py")[0] + ".py", error)
    return _refuse(name, f"cannot be imported: {reason}{hint}", "BAD_IMPORT", line)


def package_hint(file: str, error: BaseException) -> str:
    """What to do about a file that belongs to a package, and looks for its siblings there."""
    path = Path(file).resolve()
    if not isinstance(error, ImportError) or "relative import" not in str(error):
        return ""
    parts = [path.stem]
    while (path.parent / "__init__.py").is_file():
        path = path.parent
        parts.insert(0, path.name)
    name = ".".join(parts)
    return f"; it is part of a package: name it {name}, in the folder above {parts[0]}"


def _line_in(path: Path, error: Exception) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _definition(module: ModuleType, attribute: str | None, name: str) -> Workflow | dict[str, Any]:
    if not attribute:
        return _only_workflow(module, name)
    found = vars(module).get(attribute)
    if isinstance(found, Workflow | dict | AuthoredWorkflow):
        return _described(found)
    if found is not None:
        text = f"{attribute} is of type {type(found).__name__}, not a workflow or a dict"
        raise _refuse(name, text, "WRONG_TYPE")
    hint = did_you_mean(attribute, list(_workflows(module)))
    raise _refuse(name, f"the module has no {show(attribute)}{hint}", "NOT_FOUND")


def _only_workflow(module: ModuleType, name: str) -> Workflow | dict[str, Any]:
    found = _workflows(module)
    if len(found) == 1:
        return _described(next(iter(found.values())))
    if not found:
        raise _refuse(name, _NONE, "NOT_FOUND")
    names = listed([f":{each}" for each in sorted(found)])
    raise _refuse(name, f"the module has several workflows, add {names}", "AMBIGUOUS")


def _workflows(module: ModuleType) -> dict[str, Workflow | AuthoredWorkflow]:
    """What the module defines; decorated functions that it has imported belong to others."""
    return {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, Workflow)
        or (isinstance(value, AuthoredWorkflow) and value.__module__ == module.__name__)
    }


def _described(found: Workflow | AuthoredWorkflow | dict[str, Any]) -> Workflow | dict[str, Any]:
    return found.definition if isinstance(found, AuthoredWorkflow) else found


__all__ = ["PythonSource", "load_all_python", "load_python", "names_python"]
