"""Loss and validation F1 over the steps, as an SVG picture."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 60, 60, 40, 50
LOSS, SCORE, GREY = "#1f5fa8", "#c0561c", "#888"


def ticks(low, high, count=5):
    """Round numbers from low to high."""
    rough = (high - low) / count or 1
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def label(value):
    return f"{value:,.10g}"


class Axis:
    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = low, max(high, low + 1e-9), start, end

    def __call__(self, value):
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def polyline(points, color, extra=""):
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{color}" {extra} points="{places}"/>'


def text(x, y, words, anchor="middle", color="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def level(y, color):
    return f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{color}"/>'


def smooth(values, share=0.9):
    mean, out = values[0], []
    for i, value in enumerate(values):
        weight = min(share, i / (i + 1))
        mean = weight * mean + (1 - weight) * value
        out.append(mean)
    return out


def draw(log):
    losses = [(line["step"], line["loss"]) for line in log if "loss" in line]
    scores = [(line["step"], line["f1"]) for line in log if "f1" in line]
    last = max([step for step, _ in losses + scores], default=1)
    across = Axis(0, last, LEFT, WIDTH - RIGHT)
    up = Axis(0, max([loss for _, loss in losses], default=1), HEIGHT - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for value in ticks(up.low, up.high):
        parts += [level(up(value), "#e4e4e4"), text(LEFT - 6, up(value) + 4, label(value), "end", LOSS)]
    parts += [text(across(value), HEIGHT - BOTTOM + 18, label(value)) for value in ticks(0, last, 8)]
    parts += [text(WIDTH / 2, HEIGHT - 12, "step"), text(LEFT, TOP - 14, "loss", "middle", LOSS)]
    if losses:
        steps = [across(step) for step, _ in losses]
        parts += [polyline(zip(steps, [up(loss) for _, loss in losses]), LOSS, 'opacity="0.3"'),
                  polyline(zip(steps, map(up, smooth([loss for _, loss in losses]))), LOSS, 'stroke-width="2"')]
    if scores:
        height = Axis(0, 100 if max(f1 for _, f1 in scores) > 1 else 1, HEIGHT - BOTTOM, TOP)
        parts += [text(WIDTH - RIGHT + 6, height(value) + 4, label(value), "start", SCORE)
                  for value in ticks(height.low, height.high)]
        points = [(across(step), height(f1)) for step, f1 in scores]
        parts += [text(WIDTH - RIGHT, TOP - 14, "validation F1", "middle", SCORE),
                  polyline(points, SCORE, 'stroke-width="2"')]
        for (x, y), (_, f1) in zip(points, scores):
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{SCORE}"/>',
                      text(x, y - 8, f"{f1:.4g}", "middle", SCORE)]
    parts += [level(HEIGHT - BOTTOM, GREY), "</svg>"]
    return "\n".join(parts) + "\n"
