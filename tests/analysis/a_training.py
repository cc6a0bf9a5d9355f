"""Programs that allocate as training and inference do, run on the model of the allocator."""

from ingest.a_snapshot import ADAMW, ADAMW_STATES, AUTOGRAD, BATCH, FORWARD, LOSS, MIB, MOVE, STEP, ZERO_GRAD, Allocator, a_frame

PARAMETERS = (8 * MIB, 2 * MIB, 2 * MIB, 3 * MIB + 512, 4096) * 3
MOMENT_LINES = tuple([a_frame("step", "/app/my_optimizer.py", 60 + line), *STEP[1:]] for line in range(2))


class Training:
    """A model with its optimizer; every method allocates what that part of a program does.

    Attributes:
        weights / gradients / states: addresses of what is live.
    """

    def __init__(self, parameters=PARAMETERS, activation=5 * MIB):
        self.allocator = Allocator()
        self.parameters = parameters
        self.activation = activation
        self.weights = []
        self.gradients = []
        self.states = []
        self.kept = []

    def load(self, frames=MOVE):
        self.weights = [self.allocator.alloc(size, frames) for size in self.parameters]

    def batch(self):
        return self.allocator.alloc(64 * 1024, BATCH)

    def forward(self, layers=6, *, keeps=True):
        for _ in range(layers):
            temporary = self.allocator.alloc(2 * self.activation, FORWARD)
            result = self.allocator.alloc(self.activation, FORWARD[:1] + FORWARD)
            self.allocator.free(temporary, FORWARD)
            if keeps:
                self.kept.append(result)
            else:
                self.allocator.free(result, FORWARD)
        self.kept.append(self.allocator.alloc(MIB + 512, LOSS))

    def backward(self, *, makes_gradients=True, until=None):
        order = list(zip(reversed(self.parameters), reversed(self.weights), strict=True))
        for size, _ in order[:until]:
            temporary = self.allocator.alloc(self.activation + 512, AUTOGRAD)
            gradient = self.allocator.alloc(size, AUTOGRAD)
            if makes_gradients:
                self.gradients.append(gradient)
            else:
                self.allocator.free(gradient, AUTOGRAD)
            self.allocator.free(temporary, AUTOGRAD)
            if self.kept:
                self.allocator.free(self.kept.pop(), AUTOGRAD)
        while self.kept and until is None:
            self.allocator.free(self.kept.pop(), AUTOGRAD)

    def adamw(self):
        if not self.states:
            self.states = [self.allocator.alloc(size, ADAMW_STATES) for size in self.parameters for _ in range(2)]
        temporaries = [self.allocator.alloc(size, ADAMW) for size in self.parameters]
        for address in temporaries:
            self.allocator.free(address, ADAMW)

    def own_adamw(self):
        """A user's own optimizer, which replaces its states in every step."""
        fresh = []
        for number, size in enumerate(self.parameters):
            for line, frames in enumerate(MOMENT_LINES):
                temporary = self.allocator.alloc(size, frames)
                fresh.append(self.allocator.alloc(size, frames))
                self.allocator.free(temporary, frames)
                if self.states:
                    self.allocator.free(self.states[2 * number + line], frames)
        self.states = fresh

    def zero_grad(self):
        for address in self.gradients:
            self.allocator.free(address, ZERO_GRAD)
        self.gradients = []

    def step(self, optimizer="adamw", **how):
        inputs = self.batch()
        self.forward()
        self.backward(**how)
        getattr(self, optimizer)()
        self.zero_grad()
        self.allocator.free(inputs, BATCH)

    def raw(self, **fields):
        return self.allocator.raw(**fields)
