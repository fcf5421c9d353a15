"""The measures in mpmath arithmetic, computed from their textbook definitions."""

from mpmath import digamma, exp, log, loggamma, mp, mpf, workdps

DIGITS = 90

#: every measure, by the name of its function
MEASURES = (
    "max_p",
    "one_minus_max_p",
    "entropy",
    "mutual_information",
    "log_precision",
    "differential_entropy",
    "log_neg_differential_entropy",
)


def measures(logits: list[float]) -> dict[str, mpf]:
    """Return every measure of one sample, with about forty correct digits."""
    with workdps(DIGITS):
        alpha = [exp(mpf(z)) for z in logits]
        alpha0 = sum(alpha)
        p = [a / alpha0 for a in alpha]
        psi, psi0 = [digamma(a) for a in alpha], digamma(alpha0)
        d_ent = sum(map(loggamma, alpha)) - loggamma(alpha0)
        d_ent -= sum((a - 1) * (each - psi0) for a, each in zip(alpha, psi, strict=True))
        entropy = -sum(v * log(v) for v in p)
        # psi(a + 1) = psi(a) + 1/a
        steps = (each + 1 / a - psi0 - 1 / alpha0 for a, each in zip(alpha, psi, strict=True))
        expected = -sum(v * step for v, step in zip(p, steps, strict=True))
        log_neg = log(-d_ent) if d_ent < 0 else -mp.inf
        values = (max(p), 1 - max(p), entropy, entropy - expected, log(alpha0), d_ent, log_neg)
        return dict(zip(MEASURES, values, strict=True))


def dirichlet_kl(log_p: list[float], log_q: list[float]) -> mpf:
    """Return KL(Dir(exp log_p) || Dir(exp log_q))."""
    with workdps(DIGITS):
        a, b = ([exp(mpf(v)) for v in values] for values in (log_p, log_q))
        a0, b0 = sum(a), sum(b)
        psi0 = digamma(a0)
        return (
            loggamma(a0)
            - loggamma(b0)
            - sum(map(loggamma, a))
            + sum(map(loggamma, b))
            + sum((x - y) * (digamma(x) - psi0) for x, y in zip(a, b, strict=True))
        )
