"""Four processes on one log: two servers decide, one visitor clicks, one learner learns. Some of them are killed.

    python examples/four_processes.py

Servers decide from a plan, and answer a visitor only when the decision stands in the log. Clicks come to the log from
elsewhere, later. The learner follows the log and publishes a new plan after every batch, a few kilobytes. None of them
keeps anything that the log does not have, so whoever is killed begins again where the log ends. At the end everything
is computed again from the log: every version bit for bit, and every decision with its propensity and direction.
"""

import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import bothworlds as bw
from bothworlds.logs import Batch, Log, LogLearner, Reward, Row, row_of

BANNERS = ["red", "blue", "green"]
CLICK_RATES = {"morning": [0.05, 0.20, 0.10], "evening": [0.25, 0.10, 0.05]}
VISITS = 4000  # for each of the two servers
KILLS = 4
SEED = 3


def share(text: str) -> float:
    """Return a number in [0, 1) that depends on a text alone: the same visitor clicks again after a restart."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest()) / 2**56


def serve(folder: Path, name: str, visits: int) -> None:
    """Decide for visitors; an answer counts as given once it stands in the server's own file."""
    log, answers, newest = Log(folder / "log.jsonl"), folder / f"{name}.answers", folder / "newest.npz"
    plan, seen = bw.load_plan(folder / "plan.npz"), 0
    done = len(answers.read_text().split()) if answers.exists() else 0
    with answers.open("a") as given:
        for visit in range(done, visits):
            if newest.exists() and (changed := newest.stat().st_mtime_ns) != seen:
                plan, seen = plan.renewed(newest), changed
            moment = "morning" if share(f"{name} {visit}") < 0.4 else "evening"
            decision = plan.act(moment)
            log.append(row_of(decision, plan))
            print(decision.id, file=given, flush=True)  # the visitor sees the banner


def click(folder: Path) -> None:
    """Follow the log, and add a reward for every decision that has none: after the servers' end, of all."""
    log, offset = Log(folder / "log.jsonl"), 0
    waiting: dict[str, Row] = {}
    while True:
        ended = (folder / "no more visits").exists()
        for record, end in log.read(offset):
            offset = end
            if isinstance(record, Row):
                waiting[record.id] = record
            elif isinstance(record, Reward):
                waiting.pop(record.id, None)
        rewards = []
        for row in waiting.values():
            clicked = share(row.id) < CLICK_RATES[str(row.context)][BANNERS.index(row.arm)]
            rewards.append(Reward(id=row.id, time=time.time(), reward=float(clicked)))
        if rewards:
            log.append(*rewards)
        elif ended:
            return
        time.sleep(0.02)


def learn(folder: Path) -> None:
    """Follow the log, learn, publish; what is learnt is saved now and then, which only makes restarts shorter."""
    saved = folder / "policy.npz"
    learner = LogLearner(bw.load(saved, stream="new"), Log(folder / "log.jsonl"))
    batches = 0
    while True:
        ended = (folder / "no more clicks").exists()
        if learner.step():
            learner.policy.plan().save(folder / "newest.npz", frame=False)
            batches += 1
            if batches % 10 == 0:
                learner.policy.save(saved)
        elif ended:
            learner.policy.save(saved)
            return
        time.sleep(0.02)


def begin(folder: Path, role: str, *words: object) -> "subprocess.Popen[bytes]":
    """Start one of the processes."""
    return subprocess.Popen([sys.executable, __file__, role, str(folder), *(str(word) for word in words)])


def run(folder: Path, *, visits: int, kills: int, seed: int, longest: float = 3.0) -> None:
    """Let four processes work, and kill a server or the learner every now and then."""
    chance = random.Random(seed)
    tasks: dict[str, tuple[object, ...]] = {
        "one": ("serve", "one", visits),
        "two": ("serve", "two", visits),
        "learner": ("learn",),
        "visitor": ("click",),
    }
    running = {name: begin(folder, str(role), *words) for name, (role, *words) in tasks.items()}
    for _ in range(kills):
        time.sleep(chance.uniform(0.5, longest))
        victim = chance.choice(["one", "two", "learner"])
        if running[victim].poll() is None:
            running[victim].kill()
            print(f"killed: {victim}", flush=True)
        running[victim].wait()
        role, *words = tasks[victim]
        running[victim] = begin(folder, str(role), *words)
    for name, mark in (("one", ""), ("two", "no more visits"), ("visitor", "no more clicks"), ("learner", "")):
        if running[name].wait() != 0:
            raise RuntimeError(f"{name} failed")
        if mark:
            (folder / mark).touch()


def audit(folder: Path) -> dict[str, int]:
    """Compute everything again from the log; raise where anything is lost, doubled or different."""
    log, policy = Log(folder / "log.jsonl"), bw.load(folder / "start.npz")
    records = [record for record, _ in log.read()]
    rows = [record for record in records if isinstance(record, Row)]
    answers = Counter(word for file in folder.glob("*.answers") for word in file.read_text().split())
    rewards = Counter(record.id for record in records if isinstance(record, Reward))
    ids = {row.id for row in rows}
    assert len(ids) == len(rows), "an id was decided twice"
    assert set(answers) <= ids, "an answer was given that the log does not have"
    assert max(answers.values()) == 1, "an id was answered twice"
    assert set(rewards) == ids, "a reward is missing, or of nothing"
    by_version: dict[int, list[Row]] = {}
    for row in rows:
        by_version.setdefault(row.version, []).append(row)
    for plan in LogLearner(policy, log).replay():
        for row in by_version.pop(plan.version, ()):
            assert row.digest == plan.digest
            assert plan.confirms(row.decision(policy.problem)), f"{row.id} is not what its plan decides"
    assert not by_version, "a version was never learnt"
    assert policy.updates == len(rows), "a reward was lost or doubled"
    assert policy.digest == bw.load(folder / "policy.npz").digest, "the learner has learnt something else"
    batches = sum(isinstance(record, Batch) for record in records)
    return {"decisions": len(rows), "answered": len(answers), "batches": batches}


def main() -> None:
    """Start, kill, and compute everything again."""
    problem = bw.Problem.from_sample(["morning", "evening"], weights=[0.4, 0.6], arms=BANNERS, reward_range=(0, 1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        policy = bw.LCTsallisINF().start(problem)
        for file in ("start.npz", "policy.npz"):
            policy.save(folder / file)
        policy.plan().save(folder / "plan.npz")
        run(folder, visits=VISITS, kills=KILLS, seed=SEED)
        found = audit(folder)
        shown = ", ".join(f"{count:,} {what}" for what, count in found.items())
        print(f"{shown}, {os.path.getsize(folder / 'newest.npz'):,} bytes a plan; computed again: all the same")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        role, place, *rest = sys.argv[1:]
        if role == "serve":
            serve(Path(place), rest[0], int(rest[1]))
        else:
            {"click": click, "learn": learn}[role](Path(place))
    else:
        main()
