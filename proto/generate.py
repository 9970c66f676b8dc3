"""Writes tidemill/protocol/generated from proto/; run it from the top of the repository."""

from __future__ import annotations

import sys
from importlib.resources import files

from grpc_tools import protoc

PACKAGE = "tidemill/protocol/generated"
FILES = ("worker.proto", "query.proto", "identity.proto")


def main() -> int:
    """Generate messages and their type stubs; the services themselves are served generically."""
    # The virtual path makes protoc write imports that name the package.
    paths = [f"-I{PACKAGE}=proto", f"-I{files('grpc_tools') / '_proto'}"]
    command = ["protoc", *paths, "--python_out=.", "--pyi_out=."]
    status: int = protoc.main([*command, *(f"{PACKAGE}/{name}" for name in FILES)])
    return status


if __name__ == "__main__":
    sys.exit(main())
