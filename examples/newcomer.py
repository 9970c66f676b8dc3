"""Decorate, deploy, submit, watch, read; `tidemill up --import newcomer.py` serves it."""
from tidemill import task, workflow

@task(retries=5)
def measure(city: str) -> list[float]:
    return [11.5, 14.0, 9.0] if city == "Porto" else [4.0]

@task
def average(values: list[float]) -> float:
    return sum(values) / len(values)

@workflow
def weather(city: str) -> float:
    return average(measure(city))

if __name__ == "__main__":
    weather.deploy()
    run = weather.submit(city="Porto")
    print(run.watch())
