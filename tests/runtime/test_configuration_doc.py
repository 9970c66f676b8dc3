"""docs/configuration.md holds the table of settings.

`python -m tests.runtime.test_configuration_doc` prints what belongs there.
"""

from __future__ import annotations

from pathlib import Path

from tidemill.runtime.addresses import DEFAULT_STORE
from tidemill.runtime.setting_kinds import TRUTH, shown
from tidemill.runtime.setting_rows import Setting
from tidemill.runtime.settings import LOOK, SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
HEADING = "| setting | flag | default | bounds | used by | |\n|---|---|---|---|---|---|\n"


def table() -> str:
    """The table as Markdown."""
    return HEADING + "".join(map(_row, SETTINGS.values()))


def _row(one: Setting) -> str:
    flag = f"`{one.option}`".replace("|", "\\|") if one.option else f"`{one.variable}` only"
    flag += "".join(f"; {role} also `{other}`" for role, other in one.also.items())
    bounds = f"{one.bounds[0]:g} to {one.bounds[1]:,.12g}" if one.bounds else ""
    roles = ", ".join(role for role in one.roles if role != LOOK)
    used = "all but worker" if LOOK in one.roles else roles
    help_text = one.help_for(None).replace("|", "\\|")
    return f"| `{one.name}` | {flag} | {_default(one)} | {bounds} | {used} | {help_text} |\n"


def _default(one: Setting) -> str:
    if one.name == "store":
        return f"`{DEFAULT_STORE}`"
    if one.kind is TRUTH:
        return "no"
    told = [f"{role}: `{shown(value)}`" for role, value in one.by_role.items()]
    default = shown(one.make())
    return "; ".join(([] if default == "-" else [f"`{default}`"]) + told)


def test_the_page_about_settings_holds_the_table() -> None:
    assert table() in PAGE.read_text()


if __name__ == "__main__":
    print(table())
