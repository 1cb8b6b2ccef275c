# SPDX-License-Identifier: Apache-2.0
"""Problems in a checkout of KernelBench."""


def parse_problems(text):
    """(level, number) of each problem in a text such as `1/19,level2/12`."""
    return [tuple(map(int, item.replace('level', '').split('/'))) for item in text.split(',')]


def all_problems(checkout):
    """(level, number, absolute path) of the problems of levels 1 to 3, in order."""
    found = []
    for path in checkout.glob('KernelBench/level[123]/*_*.py'):
        level, number = int(path.parent.name[-1]), path.name.split('_')[0]
        if number.isdigit():
            found.append((level, int(number), path.resolve()))
    return sorted(found)


def problem_name(level, path):
    """How tables call it: `level1/19_ReLU`."""
    return f'level{level}/{path.stem}'


def find_problem(checkout, level, number):
    """Its absolute path. FileNotFoundError where the checkout has none of this number."""
    found = sorted((checkout / f'KernelBench/level{level}').glob(f'{number}_*.py'))
    if not found:
        raise FileNotFoundError(f'{checkout} has no KernelBench/level{level}/{number}_*.py')
    return found[0].resolve()
