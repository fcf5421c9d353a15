"""The measures in mpmath arithmetic, straight from their textbook definitions."""

from mpmath import digamma, exp, log, loggamma, mp, mpf, workdps

DIGITS = 120


def measures(logits: list[float]) -> dict[str, mpf]:
    """:return: every measure of one sample, with about sixty right digits"""
    with workdps(DIGITS):
        z = [mpf(v) for v in logits]
        alpha = [exp(v) for v in z]
        alpha0 = sum(alpha)
        p = [a / alpha0 for a in alpha]
        top = max(p)
        d_ent = (
            sum(map(loggamma, alpha))
            - loggamma(alpha0)
            - sum((a - 1) * (digamma(a) - digamma(alpha0)) for a in alpha)
        )
        entropy = -sum(v * log(v) for v in p)
        expected = -sum(v * (digamma(a + 1) - digamma(alpha0 + 1)) for v, a in zip(p, alpha))
        return {
            "max_p": top,
            "one_minus_max_p": 1 - top,
            "entropy": entropy,
            "mutual_information": entropy - expected,
            "log_precision": log(alpha0),
            "differential_entropy": d_ent,
            "log_neg_differential_entropy": log(-d_ent) if d_ent < 0 else -mp.inf,
        }


def dirichlet_kl(log_p: list[float], log_q: list[float]) -> mpf:
    """:return: KL(Dir(exp log_p) || Dir(exp log_q))"""
    with workdps(DIGITS):
        a, b = ([exp(mpf(v)) for v in values] for values in (log_p, log_q))
        a0, b0 = sum(a), sum(b)
        return (
            loggamma(a0)
            - loggamma(b0)
            - sum(map(loggamma, a))
            + sum(map(loggamma, b))
            + sum((x - y) * (digamma(x) - digamma(a0)) for x, y in zip(a, b))
        )
