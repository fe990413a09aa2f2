// The layerwise step (LANS, LAMB) of many tensors on a CPU; the formula is in reference.py, the schema in __init__.py.
//
// Against torch's stable ABI: one build serves every torch from 2.11 on and every Python.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SEVERAL_INSTRUCTION_SETS
#include <immintrin.h>
#endif

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// Of one tensor and one step, as the loops read them; k = sqrt(1 - beta2^t), or 1 without bias correction.
struct Numbers {
  float beta1, rest1, beta2, rest2;
  float scale;  // what a gradient is multiplied by
  float eps;  // k eps
  float momentum;  // k / (1 - beta1^t)
  float gradient;  // k
  float decay;
  float lose, of_m, of_g;  // the step: x - (lose x + (of_m m + of_g g) / (sqrt(v) + k eps))
};

#define LANES 4
namespace baseline {
#include "loops.h"
}
#undef LANES
#ifdef SEVERAL_INSTRUCTION_SETS
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define LANES 8
namespace avx2 {
#include "loops.h"
}
#undef LANES
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#define LANES 16
namespace avx512 {
#include "loops.h"
}
#undef LANES
#pragma GCC pop_options
#endif

struct Loops {
  double (*square_sum)(const float*, int64_t);
  void (*move_moments[2])(float*, const float*, float*, float*, int64_t, Numbers, double*);
  void (*move_weights[2])(float*, const float*, float*, float*, int64_t, Numbers);
};

#define LOOPS(set) \
  {set::square_sum, {set::move_moments<false>, set::move_moments<true>}, {set::move_weights<false>, set::move_weights<true>}}

// The widest instruction set that this processor has and ATEN_CPU_CAPABILITY permits, as in torch itself.
Loops choose_loops() {
#ifdef SEVERAL_INSTRUCTION_SETS
  const char* variable = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string permitted = variable ? variable : "avx512";
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx512 && permitted == "avx512") return LOOPS(avx512);
  if (has_avx2 && permitted != "default") return LOOPS(avx2);
#endif
  return LOOPS(baseline);
}

// --- bfloat16 ---

void widen(const uint16_t* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = uint32_t(from[i]) << 16;
    std::memcpy(to + i, &bits, sizeof(bits));
  }
}

void narrow(const float* from, uint16_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    // To nearest, ties to even. A NaN stays one, though rounding could carry it over into infinity.
    to[i] = is_nan ? 0x7fc0 : uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
}

// --- tensors, chunks, waves ---

// Elements whose sums are added up in float32, lane by lane; sums of chunks are added in float64. A chunk and its place
// depend on the tensor alone, never on the number of threads: so the step repeats bit for bit with any number.
constexpr int64_t kChunk = 4096;

// Chunks that are worked on upwards even when a pass runs backwards.
constexpr int64_t kBlock = 16;

// Elements of a wave. The passes of one wave follow each other while its tensors are still in the cache.
constexpr int64_t kWave = 1 << 20;

// Elements below which waking another thread costs more than it saves.
constexpr int64_t kGrain = 1 << 15;

struct Item {
  float *x, *m, *v;
  const float* g;  // or null, where the gradient is bfloat16
  const uint16_t* narrow_g;
  uint16_t* copy;  // null, or takes the new weights in bfloat16
  float* ratio;
  int64_t n;
  int64_t step;
  Numbers numbers;
};

struct Chunk {
  Item* item;
  int64_t begin, size;
  double sums[3];
};

struct Settings {
  double lr, grad_scale, beta1, beta2, eps, decay, lowest, highest;
  bool bias_correction, adapts, normalised;
};

void start(Item& item, const Settings& s) {
  const double k = s.bias_correction ? std::sqrt(1 - std::pow(s.beta2, item.step)) : 1.0;
  const double correction = s.bias_correction ? 1 - std::pow(s.beta1, item.step) : 1.0;
  Numbers& numbers = item.numbers;
  numbers.beta1 = s.beta1, numbers.rest1 = 1 - s.beta1, numbers.beta2 = s.beta2, numbers.rest2 = 1 - s.beta2;
  numbers.scale = s.grad_scale, numbers.eps = k * s.eps;
  numbers.momentum = k / correction, numbers.gradient = k, numbers.decay = s.decay;
}

void normalise(Item& item, const double* sums, const Settings& s) {
  item.numbers.scale = s.grad_scale / (s.grad_scale * std::sqrt(sums[0]) + s.eps);
}

void set_step(Item& item, const double* sums, const Settings& s) {
  const auto ratio = [&](double sum_u) {
    if (!s.adapts || sums[0] == 0 || sum_u == 0) return 1.0;
    return std::min(std::max(std::sqrt(sums[0] / sum_u), s.lowest), s.highest);
  };
  Numbers& numbers = item.numbers;
  const double ratio_r = ratio(sums[1]), share = s.normalised ? s.beta1 : 1.0;
  const double step_r = s.lr * share * ratio_r, step_c = s.normalised ? s.lr * (1 - share) * ratio(sums[2]) : 0.0;
  numbers.lose = s.decay * (step_r + step_c);
  numbers.of_m = step_r * numbers.momentum;
  numbers.of_g = step_c * numbers.gradient * numbers.scale;
  *item.ratio = ratio_r;
}

// Runs body over the chunks on torch's threads. Backwards where the pass before ran forwards: what it touched last is
// still in the cache, and every thread keeps its chunks. Block by block, because the processor reads ahead upwards: chunk
// by chunk, the pass took 1.4 times as long.
template <class Body>
void sweep(std::vector<Chunk>& chunks, bool backwards, int64_t elements, const Body& body) {
  const int64_t count = chunks.size(), grain = std::max<int64_t>(1, count * kGrain / std::max<int64_t>(1, elements));
  torch::stable::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    std::vector<float> buffer(kChunk);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = (i - begin) / kBlock * kBlock;
      const int64_t mirrored = i - block + std::max<int64_t>(0, end - begin - block - kBlock);
      Chunk& chunk = chunks[backwards ? mirrored : i];
      const Item& item = *chunk.item;
      const float* g = item.g ? item.g + chunk.begin : buffer.data();
      if (!item.g) widen(item.narrow_g + chunk.begin, buffer.data(), chunk.size);
      body(chunk, item, g);
    }
  });
}

// Calls body with every tensor and the sums of its chunks, added up in their order.
template <class Body>
void each_tensor(const std::vector<Chunk>& chunks, const Body& body) {
  for (size_t i = 0; i < chunks.size();) {
    double sums[3] = {};
    Item* item = chunks[i].item;
    for (; i < chunks.size() && chunks[i].item == item; ++i)
      for (int k = 0; k < 3; ++k) sums[k] += chunks[i].sums[k];
    body(*item, sums);
  }
}

const Loops loops = choose_loops();

void sum_squares(std::vector<Chunk>& chunks, int64_t elements) {
  sweep(chunks, false, elements, [&](Chunk& chunk, const Item&, const float* g) {
    chunk.sums[0] = loops.square_sum(g, chunk.size);
    chunk.sums[1] = chunk.sums[2] = 0;
  });
}

void step_wave(std::vector<Chunk>& chunks, int64_t elements, const Settings& s) {
  if (s.normalised) {
    sum_squares(chunks, elements);
    each_tensor(chunks, [&](Item& item, const double* sums) { normalise(item, sums, s); });
  }
  sweep(chunks, true, elements, [&](Chunk& chunk, const Item& item, const float* g) {
    const int64_t at = chunk.begin;
    loops.move_moments[s.normalised](
        item.x + at, g, item.m + at, item.v + at, chunk.size, item.numbers, chunk.sums);
  });
  each_tensor(chunks, [&](Item& item, const double* sums) { set_step(item, sums, s); });
  sweep(chunks, false, elements, [&](Chunk& chunk, const Item& item, const float* g) {
    const int64_t at = chunk.begin;
    loops.move_weights[s.normalised](item.x + at, g, item.m + at, item.v + at, chunk.size, item.numbers);
    if (item.copy) narrow(item.x + at, item.copy + at, chunk.size);
  });
}

// --- the ops ---

double number(const Tensor& tensor) {
  STD_TORCH_CHECK(tensor.numel() == 1 && tensor.is_cpu(), "steps, lr and grad_scale must be single numbers on the CPU");
  if (tensor.scalar_type() == ScalarType::Double) return *static_cast<const double*>(tensor.const_data_ptr());
  STD_TORCH_CHECK(tensor.scalar_type() == ScalarType::Float, "steps, lr and grad_scale must be float32 or float64");
  return *static_cast<const float*>(tensor.const_data_ptr());
}

void* data(const Tensor& tensor, ScalarType type, int64_t n, const char* name) {
  STD_TORCH_CHECK(
      tensor.is_cpu() && tensor.scalar_type() == type && tensor.is_contiguous() && tensor.numel() == n, name,
      ": tensors must be contiguous, on the CPU, as long as their weight, and float32 (copies bfloat16, grads either)");
  return tensor.mutable_data_ptr();
}

void set_gradient(Item& item, const Tensor& grad) {
  const bool is_narrow = grad.scalar_type() == ScalarType::BFloat16;
  const void* g = data(grad, is_narrow ? ScalarType::BFloat16 : ScalarType::Float, item.n, "grads");
  item.g = is_narrow ? nullptr : static_cast<const float*>(g);
  item.narrow_g = is_narrow ? static_cast<const uint16_t*>(g) : nullptr;
}

void cut(Item& item, std::vector<Chunk>& chunks) {
  for (int64_t begin = 0; begin < item.n; begin += kChunk)
    chunks.push_back({&item, begin, std::min(kChunk, item.n - begin), {}});
}

void norm(const std::vector<Tensor> tensors, Tensor out) {
  std::vector<Item> items(tensors.size());
  std::vector<Chunk> chunks;
  int64_t elements = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    elements += items[i].n = tensors[i].numel();
    set_gradient(items[i], tensors[i]);
    cut(items[i], chunks);
  }
  sum_squares(chunks, elements);
  double sum = 0;
  for (const Chunk& chunk : chunks) sum += chunk.sums[0];
  *static_cast<double*>(data(out, ScalarType::Double, 1, "out")) = std::sqrt(sum);
}

void layerwise_step(
    const std::vector<Tensor> weights, const std::vector<Tensor> grads, const std::vector<Tensor> exp_avgs,
    const std::vector<Tensor> exp_avg_sqs, const std::vector<Tensor> trust_ratios, const std::vector<Tensor> copies,
    const std::vector<Tensor> steps, const Tensor lr, const Tensor grad_scale, double beta1, double beta2, double eps,
    double weight_decay, double lowest, double highest, bool bias_correction, bool adapts, bool normalised) {
  const size_t count = weights.size();
  for (const auto* list : {&grads, &exp_avgs, &exp_avg_sqs, &trust_ratios, &steps})
    STD_TORCH_CHECK(list->size() == count, "there must be one of everything for each weight");
  STD_TORCH_CHECK(copies.empty() || copies.size() == count, "there must be a copy of every weight, or of none");
  const Settings settings{number(lr), number(grad_scale), beta1, beta2, eps, weight_decay, lowest, highest,
                          bias_correction, adapts, normalised};
  std::vector<Item> items(count);
  for (size_t i = 0; i < count; ++i) {
    Item& item = items[i];
    const int64_t n = item.n = weights[i].numel();
    item.x = static_cast<float*>(data(weights[i], ScalarType::Float, n, "weights"));
    item.m = static_cast<float*>(data(exp_avgs[i], ScalarType::Float, n, "exp_avgs"));
    item.v = static_cast<float*>(data(exp_avg_sqs[i], ScalarType::Float, n, "exp_avg_sqs"));
    item.ratio = static_cast<float*>(data(trust_ratios[i], ScalarType::Float, 1, "trust_ratios"));
    set_gradient(item, grads[i]);
    item.copy =
        copies.empty() ? nullptr : static_cast<uint16_t*>(data(copies[i], ScalarType::BFloat16, n, "copies"));
    item.step = number(steps[i]);
    start(item, settings);
  }
  // A tensor is never cut in two, so a wave may be longer.
  std::vector<Chunk> wave;
  int64_t elements = 0;
  for (Item& item : items) {
    cut(item, wave);
    elements += item.n;
    if (elements >= kWave || &item == &items.back()) {
      step_wave(wave, elements, settings);
      wave.clear();
      elements = 0;
    }
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(workbench_kernels, CPU, library) {
  library.impl("layerwise_step", TORCH_BOX(&layerwise_step));
  library.impl("norm", TORCH_BOX(&norm));
}
