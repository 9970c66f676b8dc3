"""`python -m tidemill.cli` is `tidemill`."""

from tidemill.cli.main import main

main()
