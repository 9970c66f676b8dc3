"""The functions that tasks may name: those of the modules that the worker was started with."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tidemill.domain.errors import TidemillError
from tidemill.domain.problems import did_you_mean
from tidemill.sdk.authored import AuthoredTask, AuthoredWorkflow, plain_function
from tidemill.sdk.python_source import package_hint


class ImportFailed(TidemillError):
    """A module that the worker was told to import cannot be imported."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"--import {name}: {reason}")
        self.reason = reason


class UnknownFunction(TidemillError):
    """A task names a function that is not in the modules the worker was started with."""


class Library:
    """Looks functions up by `module:name`. Nothing that a task says makes it import anything."""

    def __init__(
        self,
        modules: Sequence[ModuleType] = (),
        imports: Sequence[str] = (),
        broken: Collection[str] = (),
    ) -> None:
        self.imports = tuple(imports)  # as given, for a child process to repeat
        self.broken = frozenset(broken)  # modules that are missing only because they failed
        self._modules = {module.__name__: module for module in _with_task_homes(modules)}
        self._known: dict[str, Callable[..., Any]] = {}

    def find(self, name: str) -> Callable[..., Any]:
        """The function called `module:qualified.name`."""
        if name not in self._known:
            self._known[name] = self._look_up(name)
        return self._known[name]

    def names(self) -> tuple[str, ...]:
        """Every function that there is, as `find` takes it."""
        found: dict[str, None] = {}
        for name, module in self._modules.items():
            found |= dict.fromkeys(f"{name}:{path}" for path in _paths(module, module))
        return tuple(sorted(found))

    def _look_up(self, name: str) -> Callable[..., Any]:
        module_name, _, path = name.partition(":")
        module = self._modules.get(module_name)
        if not path:
            raise UnknownFunction(f"{name!r} names no function: {_with_colon(name)}")
        if module is None:
            loaded = ", ".join(sorted(self._modules)) or "none"
            raise UnknownFunction(
                f"{name!r}: the module {module_name} is not imported (imported: {loaded}); give "
                "--import to the worker, or for `tidemill run` name it under `imports` of the file"
            )
        found: Any = module
        for part in path.split("."):
            found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
            found = _plain(found)
            if not _belongs(found, module):
                hint = did_you_mean(path, _functions(module))
                raise UnknownFunction(f"{name!r}: {module_name} defines no function {path!r}{hint}")
        if not _is_function(found):
            raise UnknownFunction(f"{name!r} is a {type(found).__name__}, not a function")
        function: Callable[..., Any] = found
        return function


def _with_task_homes(modules: Sequence[ModuleType]) -> Iterator[ModuleType]:
    """The modules, and those from which they have imported tasks to put into their workflows."""
    yield from modules
    for module in modules:
        parts = [part for part in vars(module).values() if isinstance(part, ModuleType)]
        for place in (module, *parts):
            tasks = [each for each in vars(place).values() if isinstance(each, AuthoredTask)]
            homes = dict.fromkeys(each.function.__module__ for each in tasks)
            yield from (sys.modules[home] for home in homes if home in sys.modules)


def _paths(place: ModuleType | type, module: ModuleType) -> Iterator[str]:
    """What leads to the functions of a module, those in its classes included."""
    for name, value in list(vars(place).items()):
        found = _plain(value)
        if name.startswith("__") or not _belongs(found, module):
            continue
        if _is_function(found):
            yield name
        elif isinstance(found, type) and found.__qualname__.endswith(name):  # no second name
            yield from (f"{name}.{path}" for path in _paths(found, module))


def _plain(found: Any) -> Any:
    """The function itself, of a static method or of one that was decorated as a task."""
    return plain_function(getattr(found, "__func__", found))


def _is_function(found: Any) -> bool:
    return callable(found) and not isinstance(found, type | ModuleType | AuthoredWorkflow)


def _with_colon(name: str) -> str:
    module, _, function = name.rstrip(":").rpartition(".")
    if module and not name.endswith(":"):
        return f"write {module}:{function}, with a colon between module and function"
    return "write module:function"


def _functions(module: ModuleType) -> list[str]:
    return [key for key, value in vars(module).items() if callable(value)]


def _belongs(found: Any, module: ModuleType) -> bool:
    """Whether the module, or a part of it, defines the thing; what it imported does not count."""
    if found is None or isinstance(found, ModuleType):
        return False
    home = getattr(found, "__module__", None)
    return home == module.__name__ or str(home).startswith(module.__name__ + ".")


def load_library(imports: Sequence[str]) -> Library:
    """Import modules by name and files by path; raises ImportFailed with one clear line."""
    return Library([_import(name) for name in imports], imports)


def load_what_works(imports: Sequence[str]) -> tuple[Library, dict[str, str]]:
    """The library of what can be imported, and why the rest cannot, for a rehearsal."""
    modules: list[ModuleType] = []
    failed: dict[str, str] = {}
    for name in imports:
        try:
            modules.append(_import(name))
        except ImportFailed as error:
            failed[name] = error.reason
    broken = [Path(name).stem if name.endswith(".py") else name for name in failed]
    return Library(modules, imports, broken), failed


def _import(name: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _import_file(Path(name))
        if "" not in sys.path:
            sys.path.insert(0, "")  # modules beside the user, as `python -m` finds them
        return importlib.import_module(name)
    except ImportFailed:
        raise
    except BaseException as error:
        # A module is user code: it may raise anything, SystemExit included.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        hint = package_hint(name, error) if name.endswith(".py") else ""
        raise ImportFailed(name, f"{reason}{_place(error)}{hint}") from error


def _import_file(path: Path) -> ModuleType:
    name = path.stem
    resolved = path.resolve()
    if not resolved.is_file():
        raise ImportFailed(str(path), "there is no such file")
    present = sys.modules.get(name)
    if present is not None and getattr(present, "__file__", None) == str(resolved):
        return present
    if present is not None or name in sys.stdlib_module_names:
        raise ImportFailed(str(path), f"the name {name!r} is taken; rename the file")
    spec = importlib.util.spec_from_file_location(name, resolved)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(resolved.parent))  # so that the file can import its neighbours
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _place(error: BaseException) -> str:
    """The line of the user's file that raised, where there is one."""
    trace = error.__traceback__
    place = ""
    while trace is not None:
        filename = trace.tb_frame.f_code.co_filename
        if "importlib" not in filename and filename != __file__:
            place = f" ({filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place
