"""Known bugs of the field, to be put into the production code for as long as a test lasts."""
