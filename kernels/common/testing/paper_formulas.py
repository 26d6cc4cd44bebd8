"""The attention operators as their papers write them: NumPy in float64, one position after the other, with every matrix there.

Slow on purpose. Nothing here is shared with the operators or with the networks in PyTorch, which are compared with it. Maps are
[h, w, c] as in the papers, and volumes [d, h, w, c]; x is the row in the GSA paper and y the column, as there. Heads are the caller's:
each is a slice of the channels.
"""

import math

import numpy


def softmax(values: numpy.ndarray) -> numpy.ndarray:
    raised = numpy.exp(values - values.max())
    return raised / raised.sum()


def positions(x: numpy.ndarray) -> numpy.ndarray:
    """The map's positions as rows: [n, c]."""
    return x.reshape(-1, x.shape[-1])


def efficient_attention(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray, normalization: str) -> numpy.ndarray:
    """Efficient Attention, equations 2 and 3: E(Q, K, V) = rho_q(Q) (rho_k(K)^T V), with Q, K [n, d_k] and V [n, d_v].
    "Scaling: rho_q(Y) = rho_k(Y) = Y / sqrt(n)", "Softmax: rho_q(Y) = sigma_row(Y), rho_k(Y) = sigma_col(Y)"."""
    shape, (q, k, v) = v.shape, (positions(one) for one in (q, k, v))
    n = len(q)
    if normalization == "scaling":
        rho_q, rho_k = q / math.sqrt(n), k / math.sqrt(n)
    else:
        rho_q = numpy.array([softmax(row) for row in q])
        rho_k = numpy.array([softmax(column) for column in k.T]).T
    context = numpy.zeros((k.shape[1], v.shape[1]))
    for position in range(n):
        context += numpy.outer(rho_k[position], v[position])
    return (rho_q @ context).reshape(shape)


def attend(queries: numpy.ndarray, keys: numpy.ndarray, values: numpy.ndarray, similarity=softmax) -> numpy.ndarray:
    """Kronecker Attention Networks, equation 1: attn(Q, K, V) = V softmax(K^T Q), of vectors in rows here: each query has its own
    distribution over the keys."""
    return numpy.array([similarity(keys @ query) @ values for query in queries])


def attention(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """The regular operator: every position attends to every position. It is the non-local block's, too."""
    return attend(positions(q), positions(k), positions(v)).reshape(v.shape)


def attention_1n(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Siamese Attention Networks, table 1: (1/N) (V K^T) Q."""
    found = attend(positions(q), positions(k), positions(v), lambda products: products / len(products))
    return found.reshape(v.shape)


def pooled(x: numpy.ndarray) -> numpy.ndarray:
    """Maxima over windows of 2 x 2; incomplete ones count."""
    height, width, channels = x.shape
    found = numpy.empty(((height + 1) // 2, (width + 1) // 2, channels))
    for row, column in numpy.ndindex(*found.shape[:2]):
        found[row, column] = positions(x[2 * row:2 * row + 2, 2 * column:2 * column + 2]).max(axis=0)
    return found


def averaged(x: numpy.ndarray, window: int, stride: int, before: int = 0) -> numpy.ndarray:
    """Means over windows of `window` x `window` positions, the first of which begins `before` positions before the map. Positions
    outside the map do not count."""
    height, width, channels = x.shape
    found = numpy.empty((math.ceil(height / stride), math.ceil(width / stride), channels))
    for row, column in numpy.ndindex(*found.shape[:2]):
        top, left = stride * row - before, stride * column - before
        found[row, column] = positions(x[max(top, 0):top + window, max(left, 0):left + window]).mean(axis=0)
    return found


def averages(x: numpy.ndarray) -> numpy.ndarray:
    """Kronecker Attention Networks, equations 14 and 15: H = (1/h) sum_i X_i:: [w, c] and L = (1/w) sum_j X_:j: [h, c], one after the
    other; rows are C's columns."""
    height, width, channels = x.shape
    horizontal, lateral = numpy.zeros((width, channels)), numpy.zeros((height, channels))
    for row, column in numpy.ndindex(height, width):
        horizontal[column] += x[row, column] / height
        lateral[row] += x[row, column] / width
    return numpy.concatenate([horizontal, lateral])


def kao_kv(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray, similarity=softmax) -> numpy.ndarray:
    """Equation 16: O = attn(X_(3), C, C)."""
    return attend(positions(q), averages(k), averages(v), similarity).reshape(v.shape)


def kao_qkv(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray, similarity=softmax) -> numpy.ndarray:
    """Equations 17 and 18: [H~, L~] = attn(C, C, C), and the outer sum of them. The equation's braces give H~ h columns and L~ w;
    C's order, in which H has w columns and L has h, says the opposite, and is followed: the column's part of a position is that
    of its own column."""
    height, width = v.shape[:2]
    found = attend(averages(q), averages(k), averages(v), similarity)
    horizontal, lateral = found[:width], found[width:]
    result = numpy.empty(v.shape)
    for row, column in numpy.ndindex(height, width):
        result[row, column] = lateral[row] + horizontal[column]
    return result


def sao(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray, w: numpy.ndarray, global_term: bool = True) -> numpy.ndarray:
    """Siamese Attention Networks, equations 3 to 5: the similarity of q_i and k_j is w^T q_i + w^T k_j, and
    o_i = (1/N) sum_j similarity(q_i, k_j) v_j. Without the global term, w^T k_j is left out."""
    shape, (q, k, v) = v.shape, (positions(one) for one in (q, k, v))
    found = numpy.zeros(v.shape)
    for i, query in enumerate(q):
        for j, key in enumerate(k):
            found[i] += (w @ query + (w @ key if global_term else 0)) * v[j] / len(q)
    return found.reshape(shape)


def squeeze_excite(x: numpy.ndarray, squeeze: numpy.ndarray, excite: numpy.ndarray) -> numpy.ndarray:
    """The block that Siamese Attention Networks compares with (Hu et al. 2018): z_c is the mean of x_c, s = sigmoid(W_2 relu(W_1 z)),
    and the result s_c x_c."""
    gates = numpy.zeros(x.shape[-1])
    for channel, row in enumerate(excite):
        hidden = [max(0.0, float(weights @ positions(x).mean(axis=0))) for weights in squeeze]
        gates[channel] = 1 / (1 + math.exp(-float(row @ numpy.array(hidden))))
    return x * gates


def explicit_map(kind: str, height: int, width: int, sigma: float, plus_one: bool = True) -> numpy.ndarray:
    """Explicitly Modeled Attention Maps, equations 7 to 12 and 5: Norm(G + 1), whose rows have the sum 1. Without `plus_one` it is
    Norm(G): the "element-wise offset of 1" is left out."""
    spots = [(row, column) for row in range(height) for column in range(width)]
    found = numpy.empty((len(spots), len(spots)))
    for i, (i_y, i_x) in enumerate(spots):
        for j, (j_y, j_x) in enumerate(spots):
            distance = math.sqrt((i_x - j_x) ** 2 + (i_y - j_y) ** 2) / math.sqrt(height**2 + width**2)
            across, down = (i_x - j_x) / width, (i_y - j_y) / height
            found[i, j] = {
                "constant": lambda: 1.0,
                "linear": lambda: 1 - distance,
                "cosine": lambda: 0.5 * (1 + math.cos(distance * math.pi)),
                "gaussian": lambda: math.exp((across**2 + down**2) / (-2 * sigma**2)),
                "exponential_euclidean": lambda: math.exp(math.sqrt(across**2 + down**2) / -sigma),
                "exponential_manhattan": lambda: math.exp((abs(across) + abs(down)) / -sigma),
            }[kind]()
    if plus_one:
        found += 1
    return found / found.sum(axis=1, keepdims=True)


def expatt(v: numpy.ndarray, kind: str, sigma: float, plus_one: bool = True) -> numpy.ndarray:
    """Equation 5: P = Norm(G + 1) V, of one map; heads with maps of their own are each a call."""
    return (explicit_map(kind, *v.shape[:2], sigma, plus_one) @ positions(v)).reshape(v.shape)


def content_attention(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Global Self-Attention Networks, equation 4: K^ = softmax of K over (x, y), C_kv = K^_xyk V_xyv, Y_xyv = Q_xyk C_kv."""
    raised = numpy.exp(k)
    shares = raised / raised.sum(axis=(0, 1))
    context = sum(numpy.outer(shares[x, y], v[x, y]) for x, y in numpy.ndindex(*v.shape[:2]))
    found = numpy.empty(v.shape)
    for x, y in numpy.ndindex(*v.shape[:2]):
        found[x, y] = q[x, y] @ context
    return found


def column_attention(q: numpy.ndarray, v: numpy.ndarray, embedding: numpy.ndarray) -> numpy.ndarray:
    """Equations 5 to 7: P_xik = R_rk with r = i - x, S_xyi = Q_xyk P_xik, Y_xyv = S_xyi V_iyv. The embedding's rows are the shifts
    from -(L - 1) to L - 1, of which a smaller map uses those in the middle."""
    height, width = v.shape[:2]
    zero = len(embedding) // 2
    found = numpy.zeros(v.shape)
    for x, y in numpy.ndindex(height, width):
        for i in range(height):
            found[x, y] += (q[x, y] @ embedding[zero + i - x]) * v[i, y]
    return found


def row_attention(q: numpy.ndarray, v: numpy.ndarray, embedding: numpy.ndarray) -> numpy.ndarray:
    """The same along the rows."""
    height, width = v.shape[:2]
    zero = len(embedding) // 2
    found = numpy.zeros(v.shape)
    for x, y in numpy.ndindex(height, width):
        for i in range(width):
            found[x, y] += (q[x, y] @ embedding[zero + i - y]) * v[x, i]
    return found


def axial_column_attention(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray, embedding: numpy.ndarray) -> numpy.ndarray:
    """What table 2 compares with, "based on both content and positions similar to Ramachandran et al. (2019) but in an axial fashion":
    Ramachandran et al. weight the neighbours of a pixel by softmax(q_ij k_ab + q_ij r_{a-i, b-j}); here they are its column."""
    height, width = v.shape[:2]
    zero = len(embedding) // 2
    found = numpy.zeros(v.shape)
    for x, y in numpy.ndindex(height, width):
        weights = softmax(numpy.array([q[x, y] @ k[i, y] + q[x, y] @ embedding[zero + i - x] for i in range(height)]))
        for i in range(height):
            found[x, y] += weights[i] * v[i, y]
    return found


def axial_row_attention(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray, embedding: numpy.ndarray) -> numpy.ndarray:
    """The same along the rows."""
    height, width = v.shape[:2]
    zero = len(embedding) // 2
    found = numpy.zeros(v.shape)
    for x, y in numpy.ndindex(height, width):
        weights = softmax(numpy.array([q[x, y] @ k[x, i] + q[x, y] @ embedding[zero + i - y] for i in range(width)]))
        for i in range(width):
            found[x, y] += weights[i] * v[x, i]
    return found
