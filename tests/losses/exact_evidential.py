"""The evidential losses written down as in their papers, for mpmath with 120 digits."""

import mpmath as mp

DIGITS = 120


def divergence(a, b):
    """KL(Dir(a) || Dir(b))."""
    a0, b0 = mp.fsum(a), mp.fsum(b)
    value = mp.loggamma(a0) - mp.loggamma(b0)
    for x, y in zip(a, b, strict=True):
        value += mp.loggamma(y) - mp.loggamma(x) + (x - y) * (mp.digamma(x) - mp.digamma(a0))
    return value


def softplus(z):
    return mp.log(1 + mp.exp(z))


def softmax(z):
    e = [mp.exp(x) for x in z]
    return [x / mp.fsum(e) for x in e]


def without_right(alpha, y, one):
    return [one if c == y else a for c, a in enumerate(alpha)]


def expected_square_error(alpha, y, weight=lambda a: 1):
    s = mp.fsum(alpha)
    p = [a / s for a in alpha]
    terms = [((c == y) - q) ** 2 + q * (1 - q) / (s + 1) for c, q in enumerate(p)]
    return mp.fsum(weight(a) * term for a, term in zip(alpha, terms, strict=True))


def relaxed(z, y, lambda1=1.0, lambda2=0.1, kl_weight=1):
    e, k = [softplus(x) for x in z], len(z)
    lambda1, lambda2, total = mp.mpf(lambda1), mp.mpf(lambda2), mp.fsum(e)
    p = [(x + lambda2) / (x + lambda1 * (total - x) + k * lambda2) for x in e]
    error = mp.fsum(((c == y) - q) ** 2 for c, q in enumerate(p))
    alpha = without_right([x + lambda2 for x in e], y, lambda2)
    return error + kl_weight * divergence(alpha, [lambda2] * k)


def revisited(z, y):
    return relaxed(z, y, lambda2=0.8, kl_weight=0)


def fisher(evidence):
    def loss(z, y):
        alpha = [1 + evidence(x) for x in z]
        s = mp.fsum(alpha)
        trigamma = [mp.psi(1, a) for a in alpha]
        inner = 1 - mp.fsum(mp.psi(1, s) / t for t in trigamma)
        determinant = mp.fsum(map(mp.log, trigamma)) + mp.log(inner)
        error = expected_square_error(alpha, y, lambda a: mp.psi(1, a))
        kl = divergence(without_right(alpha, y, mp.mpf(1)), [mp.mpf(1)] * len(z))
        return error - mp.mpf(0.05) * determinant + kl

    return loss


def belief_matching(z, y):
    alpha = [mp.exp(x) for x in z]
    fit = mp.digamma(alpha[y]) - mp.digamma(mp.fsum(alpha))
    return mp.mpf(0.01) * divergence(alpha, [mp.mpf(1)] * len(z)) - fit


def density_aware(z, y):
    alpha = [mp.exp(x) for x in z]
    kl = divergence(without_right(alpha, y, mp.mpf(1)), [mp.mpf(1)] * len(z))
    return expected_square_error(alpha, y) + mp.mpf(0.05) * kl


def flexible_moments(outputs):
    """The allocation, the means and the variances of a flexible Dirichlet."""
    k = len(outputs) // 2
    alpha, p, tau = [mp.exp(x) for x in outputs[:k]], softmax(outputs[k:-1]), softplus(outputs[-1])
    total = mp.fsum(alpha) + tau
    mean = [(a + tau * q) / total for a, q in zip(alpha, p, strict=True)]
    variance = [
        m * (1 - m) / (total + 1) + tau**2 * q * (1 - q) / (total * (total + 1))
        for m, q in zip(mean, p, strict=True)
    ]
    return p, mean, variance


def flexible(outputs, y):
    p, mean, variance = flexible_moments(outputs)
    rows = enumerate(zip(p, mean, variance, strict=True))
    return mp.fsum(((c == y) - m) ** 2 + v + ((c == y) - q) ** 2 for c, (q, m, v) in rows)


def distillation(temperature, smoothing, scaled=False, classes=3):
    own = temperature if scaled else 1

    def loss(outputs, y):
        alpha = [mp.exp(x / own) for x in outputs[:classes]]
        rest = [x / temperature for x in outputs[classes:]]
        members = [softmax(rest[i : i + classes]) for i in range(0, len(rest), classes)]
        value = mp.fsum(map(mp.loggamma, alpha)) - mp.loggamma(mp.fsum(alpha))
        for c, a in enumerate(alpha):
            logs = [mp.log((1 - smoothing) * p[c] + smoothing / classes) for p in members]
            value -= (a - 1) * mp.fsum(logs) / len(members)
        return own**2 * value

    return loss


def gradient(loss, z, y):
    """The derivatives by differences, exact to about 80 digits."""
    step, found = mp.mpf(10) ** -40, []
    for i in range(len(z)):
        ends = [[x + sign * step * (i == j) for j, x in enumerate(z)] for sign in (1, -1)]
        found.append((loss(ends[0], y) - loss(ends[1], y)) / (2 * step))
    return found
