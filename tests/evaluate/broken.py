"""Congestion controls that are broken, each in its way."""

import math


class _Window:
    def __init__(self, start):
        self.window = start.window

    def on_ack(self, event):
        self.window += event.mss * event.acked_bytes / self.window

    def on_loss(self, event):
        self.window = max(self.window / 2, 2 * event.mss)

    on_timeout = on_loss


class NotANumber(_Window):
    def on_loss(self, event):
        self.window = math.nan


class Negative(_Window):
    def on_loss(self, event):
        self.window = -1


class Endless(_Window):
    def on_ack(self, event):
        self.window = math.inf


class Throws(_Window):
    def on_ack(self, event):
        raise KeyError("srtt")


class Hangs(_Window):
    def on_ack(self, event):
        while True:
            pass


class SendsWithoutEnd(_Window):
    pacing_bps = 1e12

    def on_ack(self, event):
        self.window = 2**30

    on_loss = on_timeout = on_ack
