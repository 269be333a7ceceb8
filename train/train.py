"""Trains an adapter, or all weights, on the prompts of `sheaf train-data`. train/README.md explains it."""
import os
import signal
import sys

from options import parse
from trouble import NotFinite, Trouble

os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
os.environ.setdefault("TQDM_DISABLE", "1")  # the bars of libraries would mix with our lines


def main(arguments=None):
    options = parse(arguments)
    try:
        import torch  # late: importing PyTorch takes seconds, and --help needs none

        import parallel
        from training import INTERRUPTED, Training
    except ImportError as error:
        print(f"train: {error}; `make train-setup` installs what training needs", file=sys.stderr)
        return 3
    alike = True  # before the first step, what goes wrong goes wrong in every process
    processes = parallel.Processes()
    try:
        processes = parallel.started(options)
        training = Training(options, processes)

        def stop(*_):
            training.stopped = True

        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, stop)
        alike = False
        code = training.run()
        processes.end()
        return code
    except Trouble as trouble:
        if processes.first or not (alike or isinstance(trouble, NotFinite)):
            print(f"train: {trouble}", file=sys.stderr)
        return 2
    except torch.OutOfMemoryError as error:
        reason = str(error).splitlines()[0]
        print(f"train: the weights and what AdamW keeps of them do not fit the GPU's memory ({reason}); use a larger GPU, "
              "a smaller model" + (", or an adapter instead of --full" if options.full else ""),
              file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
