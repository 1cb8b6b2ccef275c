# SPDX-License-Identifier: Apache-2.0
"""Problems that nobody tuned for, drawn from a seed.

Each is a file in KernelBench form with one to six operations: families of networks
and single operations over sizes that are odd, prime or 1, in f32, f16 or bf16. The
same seed and number give the same file, so that a result can be looked at again;
a fresh seed gives problems that nobody has seen.
"""

import random

SIZES = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 61, 64, 67, 96, 127, 128, 131)
WIDE = (64, 96, 127, 128, 200, 251, 256, 257, 384, 509, 512, 640, 768, 1021, 1024)
LONG = (4096, 5000, 8191, 16384, 30011, 65536, 100003)
ACTIVATIONS = ('torch.relu({})', 'F.gelu({})', 'F.silu({})', 'torch.tanh({})', 'torch.sigmoid({})',
               'F.leaky_relu({}, 0.1)', 'F.hardswish({})', 'F.mish({})', 'F.softplus({})')
POINTWISE = ACTIVATIONS + ('({} * 0.7)', '({} + 1.5)', 'torch.clamp({}, -0.8, 0.9)', 'torch.abs({})')

TEMPLATE = '''"""{title}"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{modules}

    def forward(self, {names}):
{lines}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


class Writer:
    """The parts of one problem while it is drawn."""

    def __init__(self, draw):
        self.draw = draw
        self.dtype = draw.choice(('float32', 'float32', 'float32', 'bfloat16', 'float16'))
        self.modules = []
        self.lines = []
        self.inputs = {}

    def module(self, text):
        name = f'm{len(self.modules)}'
        self.modules.append(f'self.{name} = {text}')
        return f'self.{name}'

    def input(self, *shape):
        name = f'x{len(self.inputs)}'
        sizes = ', '.join(map(str, shape))
        self.inputs[name] = f'torch.randn({sizes}, dtype=torch.{self.dtype})'
        return name

    def integers(self, high, *shape):
        name = f'x{len(self.inputs)}'
        self.inputs[name] = f'torch.randint(0, {high}, {shape!r})'
        return name

    def step(self, text):
        self.lines.append(f'h = {text}')

    def chain(self, options, most):
        for _ in range(self.draw.randint(0, most)):
            self.step(self.draw.choice(options).format('h'))

    def to_text(self, title):
        cast = '' if self.dtype == 'float32' else f'.to(torch.{self.dtype})'
        modules = '\n'.join(f'        {line}{cast}' for line in self.modules) or '        pass'
        lines = '\n'.join(f'        {line}' for line in self.lines + ['return h'])
        return TEMPLATE.format(title=title, modules=modules, lines=lines,
                               names=', '.join(self.inputs), inputs=', '.join(self.inputs.values()))


def draw_perceptron(w):
    width = w.draw.choice(WIDE)
    w.step(w.input(w.draw.choice(SIZES), width))
    for _ in range(w.draw.randint(1, 3)):
        following = w.draw.choice(WIDE)
        w.step(f"{w.module(f'nn.Linear({width}, {following})')}(h)")
        w.chain(ACTIVATIONS, 1)
        width = following


def draw_convolution(w):
    channels, size = w.draw.choice((3, 7, 16, 32)), w.draw.choice((13, 16, 27, 31, 32, 48))
    w.step(w.input(w.draw.choice((1, 2, 5)), channels, size, size))
    for _ in range(w.draw.randint(1, 2)):
        following, kernel = w.draw.choice((5, 8, 16, 24, 33)), w.draw.choice((1, 3, 5))
        convolution = f'nn.Conv2d({channels}, {following}, {kernel}, padding={kernel // 2})'
        w.step(f'{w.module(convolution)}(h)')
        w.chain(ACTIVATIONS, 2)
        channels = following
    if w.draw.random() < 0.4:
        w.step('F.max_pool2d(h, 2)')


def draw_attention(w):
    heads, width = w.draw.choice((1, 3, 4, 8)), w.draw.choice((16, 24, 32, 64))
    shape = (w.draw.choice((1, 2, 3)), heads, w.draw.choice((17, 64, 67, 127, 128)), width)
    q, k, v = (w.input(*shape) for _ in range(3))
    if w.draw.random() < 0.5:
        w.step(f'F.scaled_dot_product_attention({q}, {k}, {v})')
    else:
        w.step(f'{q} @ {k}.transpose(-2, -1) * {width ** -0.5:.6f}')
        w.step('torch.softmax(h, dim=-1)')
        w.step(f'h @ {v}')


def draw_norm(w):
    rows, width = w.draw.choice((1, 17, 64, 251, 512)), w.draw.choice(WIDE)
    w.step(w.input(rows, width))
    w.chain(POINTWISE, 2)
    norm = w.draw.choice((f'nn.LayerNorm({width})', f'nn.RMSNorm({width})', 'nn.Softmax(dim=-1)',
                          'nn.LogSoftmax(dim=-1)'))
    w.step(f'{w.module(norm)}(h)')
    w.chain(POINTWISE, 2)


def draw_reduction(w):
    w.step(w.input(w.draw.choice(SIZES), w.draw.choice(LONG)))
    w.chain(POINTWISE, 2)
    reduction = w.draw.choice(('sum', 'mean', 'amax', 'argmax', 'logsumexp', 'std', 'norm'))
    axis = '' if reduction in ('sum', 'mean') and w.draw.random() < 0.3 else f"dim={w.draw.choice((0, 1, -1))}"
    w.step(f'torch.{reduction}(h, {axis})' if axis else f'torch.{reduction}(h)')


def draw_pointwise(w):
    shape = (w.draw.choice(SIZES), w.draw.choice(LONG))
    w.step(w.input(*shape))
    if w.draw.random() < 0.5:
        w.step(f'h * {w.input(*shape)}')
    w.step(w.draw.choice(POINTWISE).format('h'))
    w.chain(POINTWISE, 4)


def draw_order(w):
    rows, width = w.draw.choice(SIZES), w.draw.choice(WIDE)
    w.step(w.input(rows, width))
    w.chain(POINTWISE, 1)
    w.step(w.draw.choice((f'torch.topk(h, {w.draw.choice((1, 5, 17))}, dim=-1)[0]',
                          'torch.sort(h, dim=-1)[0]', 'torch.cumsum(h, dim=-1)', 'torch.cumsum(h, dim=0)')))


def draw_u_net(w):
    channels, size = w.draw.choice((4, 8, 15)), w.draw.choice((16, 24, 32))
    x = w.input(w.draw.choice((1, 2)), channels, size, size)
    down = w.module(f'nn.Conv2d({channels}, {2 * channels}, 3, stride=2, padding=1)')
    up = w.module(f'nn.ConvTranspose2d({2 * channels}, {channels}, 2, stride=2)')
    last = w.module(f'nn.Conv2d({2 * channels}, {channels}, 3, padding=1)')
    w.step(w.draw.choice(ACTIVATIONS).format(f'{down}({x})'))
    w.step(f'torch.cat([{x}, {up}(h)], dim=1)')
    w.step(f'{last}(h)')


def draw_lookup(w):
    rows, width = w.draw.choice((100, 1009, 5000)), w.draw.choice(WIDE)
    index = w.integers(rows, w.draw.choice(SIZES), w.draw.choice((1, 7, 32)))
    w.step(f"{w.module(f'nn.Embedding({rows}, {width})')}({index})")
    w.chain(POINTWISE, 2)
    if w.draw.random() < 0.5:
        w.step('h.mean(dim=1)')


def draw_recurrence(w):
    width, hidden = w.draw.choice((13, 32, 64)), w.draw.choice((16, 31, 64))
    kind = w.draw.choice(('LSTM', 'GRU'))
    x = w.input(w.draw.choice((1, 3, 8)), w.draw.choice((5, 16, 31)), width)
    w.step(f"{w.module(f'nn.{kind}({width}, {hidden}, batch_first=True)')}({x})[0]")
    w.step(f"{w.module(f'nn.Linear({hidden}, {w.draw.choice(SIZES)})')}(h)")


FAMILIES = {'perceptron': draw_perceptron, 'convolution': draw_convolution, 'attention': draw_attention,
            'norm': draw_norm, 'reduction': draw_reduction, 'pointwise': draw_pointwise,
            'order': draw_order, 'u_net': draw_u_net, 'lookup': draw_lookup, 'recurrence': draw_recurrence}


def draw_problem(seed, number):
    """(name, text) of a problem; families take turns, so that each comes as often."""
    family = list(FAMILIES)[number % len(FAMILIES)]
    writer = Writer(random.Random(f'{seed} {number}'))
    FAMILIES[family](writer)
    name = f'{family}_{number}'
    return name, writer.to_text(f'Variant {number} of seed {seed}: {family}, {writer.dtype}.')
