"""What went wrong."""

from typing import Any, Tuple


class Error(Exception):
    """sheaf or the machine failed: out of memory, a full disk, a device that was lost.

    `exit_code` is what the command line would have ended with (3; 75: another try may succeed).
    """

    exit_code: int = 3

    def __init__(self, message: str, exit_code: int = 3):
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> Tuple[Any, ...]:
        return Error, (str(self), self.exit_code)


class JobError(Error, ValueError):
    """The job, a table or a file that it names is wrong, and you can put it right.

    `place`      where it is: "job.yaml:7", "job: input.document"; empty where the message names no place
    `fix`        what to do about it; empty where that is plain
    `messages`   all mistakes that were found in one go; the error's text is the first of them and how many follow
    `exit_code`  2, as of the command line
    """

    def __init__(self, messages: "list[dict[str, str]]"):
        first = messages[0]
        more = f" (and {len(messages) - 1} more; see .messages)" if len(messages) > 1 else ""
        super().__init__(first["message"] + more, 2)
        self.place: str = first["place"]
        self.fix: str = first["fix"]
        self.messages: "list[str]" = [each["message"] for each in messages]
        self._told = messages

    def __reduce__(self) -> Tuple[Any, ...]:
        return JobError, (self._told,)
