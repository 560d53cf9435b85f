"""The file of ``verify --resume``: what is verified already, so that a verification that was killed goes on.

One JSON object a line, each written once it is known::

    {"verify": 1, "release", "link", "source", "destination", "topics", "began"}       the verification
    {"parts": [job, ...]}                                                               how a partition was divided
    {"job": job, "result": result}                                                      what was found

Only good results are kept: everything else is looked at again. The file is removed when the verification ends.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from appliance.errors import ApplianceError, SettingsError
from appliance.verify.model.report import PartitionResult
from appliance.verify.work import Job, decode_job, decode_result, encode_job

_VERSION = 1

_BEGINNING = '{"verify":'
"""The first characters of a file: one that has others is somebody else's, and stays as it is."""

Key = tuple[str, str, int]


class ResumeFile:
    """``header`` names the verification; ``began`` is when it did, as the file has it."""

    def __init__(self, path: Path | None, header: dict[str, Any]) -> None:
        """Read the file, or make it; without a path nothing is kept."""
        self.began: str = header["began"]
        self._path = path
        self._parts: dict[Key, list[Job]] = {}
        self._results: dict[Job, PartitionResult] = {}
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            self._read(path, {"verify": _VERSION, **header})
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            raise SettingsError([f"--resume {path}: {error.strerror}"]) from error
        self._file = os.fdopen(descriptor, "a", encoding="utf-8")
        if not path.stat().st_size:
            self._write({"verify": _VERSION, **header})

    def parts(self, job: Job) -> list[Job] | None:
        """The parts into which the partition of a job was divided; None if it was not begun."""
        return self._parts.get(_key(job))

    def result(self, job: Job) -> PartitionResult | None:
        """The known result of a job; None if it has to be verified."""
        return self._results.get(job)

    def divided(self, parts: Sequence[Job]) -> None:
        """A partition has these parts."""
        if self._parts.get(_key(parts[0])) != list(parts):
            self._write({"parts": [encode_job(part) for part in parts]})

    def found(self, job: Job, result: PartitionResult) -> None:
        """A job has this result."""
        if result.state.well:
            self._write({"job": encode_job(job), "result": asdict(result)})

    def end(self) -> None:
        """Everything is verified: forget it, so that the next verification begins anew.

        A file that cannot be removed, as one that is mounted by itself, is emptied.
        """
        if self._file and self._path:
            self._file.close()
            try:
                self._path.unlink(missing_ok=True)
            except OSError:
                with contextlib.suppress(OSError):  # the results are worth more
                    os.truncate(self._path, 0)

    def _write(self, line: dict[str, Any]) -> None:
        try:
            if self._file:
                self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
                self._file.flush()
        except OSError as error:
            raise ApplianceError(f"--resume {self._path}: {error.strerror}") from error

    def _read(self, path: Path, header: dict[str, Any]) -> None:
        if not path.exists():
            return
        try:
            text = path.read_text(encoding="utf-8")
            complete = text.rpartition("\n")[0]
            first, *lines = (json.loads(line) for line in complete.splitlines()) if complete else (header,)
            is_ours = complete or text.startswith(_BEGINNING) or _BEGINNING.startswith(text)
            if not is_ours or {**first, "began": ""} != {**header, "began": ""}:
                raise ValueError("of another verification")
            self.began = first["began"]
            for line in lines:
                self._take(line)
            if text != (rest := f"{complete}\n" if complete else ""):  # a kill has cut the last line off
                os.truncate(path, len(rest.encode()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SettingsError([f"--resume {path}: {error}: name another file, or remove this one"]) from error

    def _take(self, line: dict[str, Any]) -> None:
        if "parts" in line:
            parts = [decode_job(fields) for fields in line["parts"]]
            self._parts[_key(parts[0])] = parts
        else:
            self._results[decode_job(line["job"])] = decode_result(line["result"])


def _key(job: Job) -> Key:
    return job.replica.source_id.hex, job.replica.destination_id.hex, job.replica.partition
