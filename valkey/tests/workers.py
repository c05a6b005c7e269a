"""Threads that write while a test does something else."""

import threading

from servers import wait_until


class Worker(threading.Thread):
    """A thread that works in turns until it is stopped. `turn` does one of them, with the result of `connect`."""

    def __init__(self):
        super().__init__()
        self.stopping, self.turns, self.failure = threading.Event(), 0, None

    def run(self):
        try:
            with self.connect() as connection:
                while not self.stopping.is_set():
                    self.turn(connection)
                    self.turns += 1
        except Exception as failure:
            self.failure = failure

    def wait_for_turns(self, count):
        """Waits until the thread has done `count` more turns."""
        goal = self.turns + count
        wait_until(lambda: self.failure or self.turns >= goal, 60)
        self.check()

    def finish(self):
        self.stopping.set()
        self.join(60)
        assert not self.is_alive()
        self.check()

    def check(self):
        if self.failure:
            raise self.failure
