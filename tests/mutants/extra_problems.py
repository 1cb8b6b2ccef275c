# SPDX-License-Identifier: Apache-2.0
"""Small problems with inputs and parameters of every kind: labels, masks, tables,
slopes, running statistics, states, probabilities, bounds.

In the form of tests/honest/problems.py, which knows other kinds.
"""

from problems import Problem


def _of(name, forward, inputs, modules="pass", **fields):
    return Problem(name=name, forward=forward, inputs=inputs, modules=modules, **fields)


PROBLEMS = (
    # Integers and masks.
    _of("labels", "F.cross_entropy(x, y, reduction='none')", "torch.randn(23, 19), torch.randint(0, 19, (23,))"),
    _of("hit", "x.gather(1, y.unsqueeze(1)).squeeze(1) - x.mean(1)", "torch.randn(23, 19), torch.randint(0, 19, (23,))"),
    _of("take_rows", "torch.index_select(x, 0, y) * 2", "torch.randn(29, 17), torch.arange(29)"),
    _of("masked", "torch.softmax(x.masked_fill(y, -1e9), 1)", "torch.randn(23, 37), torch.zeros(23, 37, dtype=torch.bool)"),
    _of("causal", "torch.softmax(x + y, 1)", "torch.randn(31, 31), torch.full((31, 31), -1e9).triu(1)"),
    _of("counts", "x / y.unsqueeze(1)", "torch.randn(23, 17), torch.randint(1, 9, (23,))"),
    _of("lengths", "torch.where(torch.arange(37) < y.unsqueeze(1), x, 0.0).sum(1)", "torch.randn(23, 37), torch.full((23,), 37)"),
    _of("long_integers", "x * 2 + 1", "torch.randint(-50, 50, (37, 5))"),
    _of("flags", "torch.where(y, x, -x)", "torch.randn(23, 17), torch.randint(0, 2, (23, 17)).bool()"),
    # Parameters and buffers.
    _of("slope", "self.p(x)", "torch.randn(31, 17)", "self.p = nn.PReLU()"),
    _of("slopes", "F.prelu(x, self.w)", "torch.randn(13, 7, 11)", "self.w = nn.Parameter(torch.full((7,), 0.25))"),
    _of("running", "F.batch_norm(x, self.m, self.v)", "torch.randn(11, 7, 5)", "self.register_buffer('m', torch.zeros(7)); self.register_buffer('v', torch.ones(7))"),
    _of("table", "self.e(x).sum(1)", "torch.randint(0, 13, (17, 5))", "self.e = nn.Embedding(13, 7)"),
    _of("filter", "F.conv1d(x, self.w)", "torch.randn(3, 1, 41)", "self.w = nn.Parameter(torch.ones(1, 1, 5) / 5)"),
    _of("scale", "x * self.s + self.b", "torch.randn(31, 17)", "self.s = nn.Parameter(torch.ones(17)); self.b = nn.Parameter(torch.zeros(17))"),
    # States that are zero in the file.
    _of("state", "torch.tanh(self.a(x) + self.b(y))", "torch.randn(9, 21), torch.zeros(9, 11)", "self.a = nn.Linear(21, 11); self.b = nn.Linear(11, 11)"),
    _of("carry", "y + torch.cumsum(x, 1)", "torch.randn(9, 37), torch.zeros(9, 1)"),
    # Restricted domains and bounds.
    _of("binary_entropy", "F.binary_cross_entropy(x, y)", "torch.rand(23, 17) * 0.98 + 0.01, torch.rand(23, 17)"),
    _of("divergence_rows", "(y * (y.log() - x)).sum(1)", "torch.randn(23, 17), torch.rand(23, 17) + 0.01"),
    _of("bounded", "torch.clamp(x, -2.5, 2.5) * 2", "torch.rand(31, 17)"),
    _of("relu_six", "F.relu6(x)", "torch.rand(31, 17)"),
    _of("root", "torch.sqrt(x.abs() + 1e-6)", "torch.randn(31, 17)"),
    _of("hinge", "torch.clamp(1 - x * y, min=0).mean()", "torch.randn(64), torch.randint(0, 2, (64,)).float() * 2 - 1"),
    _of("huber", "F.huber_loss(x, y, delta=1.5)", "torch.rand(31, 17), torch.rand(31, 17)"),
    _of("unit_rows", "x / (x.norm(dim=1, keepdim=True) + 1e-6)", "torch.randn(23, 37)"),
    _of("sharp", "torch.softmax(x * 8, dim=1)", "torch.randn(23, 37)"),
    _of("spread", "(x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)", "torch.randn(23, 37)"),
    _of("largest", "torch.max(x, dim=1)[0]", "torch.rand(23, 37)"),
    _of("geometric", "torch.exp(torch.log(x).mean(1))", "torch.rand(23, 37) + 0.1"),
    _of("distance", "((x - y) ** 2).sum(1).sqrt()", "torch.randn(23, 37), torch.randn(23, 37)"),
    # Types.
    _of("double_sum", "x.sum(1)", "torch.randn(23, 137, dtype=torch.float64)"),
    _of("double_product", "x @ y", "torch.randn(13, 21, dtype=torch.float64), torch.randn(21, 9, dtype=torch.float64)"),
)
