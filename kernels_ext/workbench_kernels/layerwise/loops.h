// The three loops of a layerwise step over one chunk of a tensor. cpu.cpp includes this file once for each instruction
// set, in a namespace of its own and under a target pragma; so there is no include guard.
//
// A register's lanes each add up their own sum, so the last bits depend on the instruction set, as torch's do; never on
// the number of threads.

// LANES, which the file that includes this one defines, is the number of float32 lanes of a register: the compiler's own
// macros do not follow the target pragma everywhere.

constexpr int kLanes = LANES;
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));

inline Lanes root(Lanes lanes) {
#if LANES == 16
  return (Lanes)_mm512_sqrt_ps((__m512)lanes);
#elif LANES == 8
  return (Lanes)_mm256_sqrt_ps((__m256)lanes);
#else
  for (int i = 0; i < kLanes; ++i) lanes[i] = std::sqrt(lanes[i]);
  return lanes;
#endif
}

inline Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

inline void store(float* to, Lanes lanes) {
  std::memcpy(to, &lanes, sizeof(lanes));
}

inline double total(Lanes lanes) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += lanes[i];
  return sum;
}

// Calls body(x, g, m, v) for every register of elements, the last ones filled up with zeros: these change no sum, since they
// become 0 / eps, and none of them is written back.
template <class Body>
inline void each_lanes(float* x, const float* g, float* m, float* v, int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(x + i, g + i, m + i, v + i);
  if (i == n) return;
  float rest[4][kLanes] = {};
  const size_t bytes = (n - i) * sizeof(float);
  std::memcpy(rest[0], x + i, bytes);
  std::memcpy(rest[1], g + i, bytes);
  std::memcpy(rest[2], m + i, bytes);
  std::memcpy(rest[3], v + i, bytes);
  body(rest[0], rest[1], rest[2], rest[3]);
  std::memcpy(x + i, rest[0], bytes);
  std::memcpy(m + i, rest[2], bytes);
  std::memcpy(v + i, rest[3], bytes);
}

inline double square_sum(const float* g, int64_t n) {
  Lanes sums[4] = {};
  int64_t i = 0;
  // Four chains of additions: one alone would wait for its own result.
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int k = 0; k < 4; ++k) {
      const Lanes lanes = load(g + i + k * kLanes);
      sums[k] += lanes * lanes;
    }
  for (int k = 0; i < n; i += kLanes, ++k) {
    float rest[kLanes] = {};
    std::memcpy(rest, g + i, std::min<int64_t>(kLanes, n - i) * sizeof(float));
    sums[k] += load(rest) * load(rest);
  }
  return total((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// New moments, and the sums of squares of x, r and c.
template <bool normalised>
inline void move_moments(float* x, const float* g, float* m, float* v, int64_t n, Numbers c, double* sums) {
  Lanes sum_x = {}, sum_r = {}, sum_c = {};
  each_lanes(x, g, m, v, n, [&](const float* x, const float* g, float* m, float* v) {
    const Lanes weight = load(x), ghat = c.scale * load(g);
    const Lanes moment = c.beta1 * load(m) + c.rest1 * ghat;
    const Lanes square = c.beta2 * load(v) + (c.rest2 * ghat) * ghat;
    store(m, moment);
    store(v, square);
    const Lanes inverse = 1.0f / (root(square) + c.eps);
    const Lanes r = (c.momentum * moment) * inverse + c.decay * weight;
    sum_x += weight * weight;
    sum_r += r * r;
    if (normalised) {
      const Lanes second = (c.gradient * ghat) * inverse + c.decay * weight;
      sum_c += second * second;
    }
  });
  sums[0] = total(sum_x);
  sums[1] = total(sum_r);
  sums[2] = total(sum_c);
}

// x <- x - (lose x + (of_m m + of_g g) / (sqrt(v) + eps)), from the moments that move_moments has left.
template <bool normalised>
inline void move_weights(float* x, const float* g, float* m, float* v, int64_t n, Numbers c) {
  each_lanes(x, g, m, v, n, [&](float* x, const float* g, const float* m, const float* v) {
    Lanes update = c.of_m * load(m);
    if (normalised) update += c.of_g * load(g);
    const Lanes weight = load(x);
    // Not (1 - lose) x: in float32, 1 - 1e-6 has already lost digits of the decay.
    store(x, weight - (c.lose * weight + update / (root(load(v)) + c.eps)));
  });
}
