// Multiply-adds and memory as the papers' tables count them, so that benchmark rows can be compared with
// theirs. A multiply-add counts once. paper_counts_test.cc checks every published row against these formulas
// and lists the rows that differ. n: positions, h and w: height and width, c or d: channels.
#pragma once

namespace saccade::kernels {

struct Cost {
  double madds = 0;
  double bytes = 0;
};

// "Kronecker Attention Networks", table 2, for one image. Each includes a linear transform of V. The paper
// gives no formula for memory; these count buffers and were fitted to its figures.
Cost KaoAttentionCost(double h, double w, double c);        // softmax attention over all positions
Cost KaoPooledAttentionCost(double h, double w, double c);  // keys and values pooled 2x2
Cost KaoKvCost(double h, double w, double c);
Cost KaoQkvCost(double h, double w, double c);

// "Siamese Attention Networks", table 2: multiply-adds of one image, without any linear transform. The paper
// measures memory at the allocator: its figures fit 16 images with every buffer rounded up to a power of two,
// which is what these count.
Cost SaoAttentionCost(double n, double c);
Cost SaoPooledAttentionCost(double n, double c);
Cost SaoScaledAttentionCost(double n, double c);  // Attn_1/N
Cost SaoCost(double n, double c);

// "Efficient Attention", tables 1, 2 and 7, for one image, including its convolutions. Without `reprojected`
// there is no convolution from dv back to d. (Table 1's formulas for computation give twice these counts; its
// examples do not.)
Cost EaCost(double n, double d, double dk, double dv, bool reprojected = true);
Cost NonLocalCost(double n, double d, double dk, double dv, bool reprojected = true);

// Multiply-adds of one image for papers without a table of operators. "Explicitly Modeled Attention Maps":
// the n x n map times V, with c channels in total. "Global Self-Attention Networks": content, column and row
// attention, with c channels in each of q, k and v.
double ExpAttMadds(double n, double c);
double GsaMadds(double h, double w, double c, double heads);

}  // namespace saccade::kernels
