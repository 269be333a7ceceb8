"""Several processes that share each step, as torchrun starts them: one per GPU."""
import datetime
import os

import torch
import torch.distributed

from trouble import Trouble

BUCKET = 1 << 25  # numbers that are added together at a time
LONGEST_WAIT = datetime.timedelta(days=1)  # for the process that validates


class Processes:
    """This process among all. One that is alone talks to nobody."""

    def __init__(self, rank=0, count=1, local=0):
        self.rank, self.count, self.local = rank, count, local

    @property
    def first(self):
        """Whether this process is the one that writes, validates and talks to the user."""
        return self.rank == 0

    def sum(self, tensors):
        """Adds up each tensor over all processes, in place."""
        if self.count == 1:
            return
        some, size = [], 0
        for i, tensor in enumerate(tensors):
            some.append(tensor)
            size += tensor.numel()
            if size >= BUCKET or i == len(tensors) - 1:
                flat = torch.cat([tensor.reshape(-1) for tensor in some])
                torch.distributed.all_reduce(flat)
                for tensor, summed in zip(some, flat.split([tensor.numel() for tensor in some])):
                    tensor.copy_(summed.view_as(tensor))
                some, size = [], 0

    def any(self, flag):
        """Whether the flag is set in any process."""
        if self.count == 1:
            return flag
        flags = torch.tensor([int(flag)])
        torch.distributed.all_reduce(flags, torch.distributed.ReduceOp.MAX)
        return bool(flags.item())

    def from_first(self, value):
        """The value that the first process has."""
        if self.count == 1:
            return value
        values = [value]
        torch.distributed.broadcast_object_list(values)
        return values[0]

    def gather(self, value):
        """The values of all processes."""
        if self.count == 1:
            return [value]
        values = [None] * self.count
        torch.distributed.all_gather_object(values, value)
        return values

    def end(self):
        if self.count > 1:
            torch.distributed.destroy_process_group()


def started(options):
    """The processes that torchrun started, or this one alone."""
    count = int(os.environ.get("WORLD_SIZE", 1))
    if count == 1:
        return Processes()
    processes = Processes(int(os.environ["RANK"]), count, int(os.environ["LOCAL_RANK"]))
    on_gpus = options.device != "cpu" and torch.cuda.is_available()
    if on_gpus and processes.local >= torch.cuda.device_count():
        raise Trouble(f"torchrun started more processes than this machine has GPUs ({torch.cuda.device_count()}); lower "
                      "--nproc-per-node")
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=LONGEST_WAIT)
    return processes
