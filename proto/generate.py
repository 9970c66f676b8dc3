"""Writes tidemill/protocol/generated from proto/; run it from the top of the repository."""

from __future__ import annotations

import sys

from grpc_tools import protoc

PACKAGE = "tidemill/protocol/generated"


def main() -> int:
    """Generate messages and their type stubs; the service itself is served generically."""
    # The virtual path makes protoc write imports that name the package.
    command = ["protoc", f"-I{PACKAGE}=proto", "--python_out=.", "--pyi_out=."]
    status: int = protoc.main([*command, f"{PACKAGE}/worker.proto"])
    return status


if __name__ == "__main__":
    sys.exit(main())
