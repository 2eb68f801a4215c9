#include "muster/core/backend/cuda/kernels/implicit_gemm_conv2d.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>

// Tensor cores multiply tiles: 16 rows by 8 numbers, times 8 numbers by 8 columns. Lane l of a warp holds the
// numbers of row (or column) l / 4 at places l % 4 and l % 4 + 4 of the eight. In which order the eight are
// added does not matter, so here they are the neighbours 2 (l % 4) and 2 (l % 4) + 1, which one access reads.
//
// Places past the end of a sum are zero in both factors, because zero times infinity is NaN. Rows and columns
// past the end may hold anything: they only affect results that are not stored.

namespace muster::cuda {
namespace {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kTileRows = 16, kTileColumns = 8, kTileDepth = 8;
constexpr int kMostGroups = 64;        // of samples, whose gradients of weights are summed separately
constexpr int kMostRowTiles = 4;       // of the gradient of the weights: 64 output channels
constexpr int kWeightColumnTiles = 2;  // of a warp, in the gradient of the weights
constexpr int kSumThreads = 8;         // per number, in the sum of the parts

__host__ __device__ constexpr int roundedUp(int number, int to) {
  return (number + to - 1) / to * to;
}
__host__ __device__ constexpr int ceiling(int number, int by) {
  return (number + by - 1) / by;
}
/// The distance of rows in shared memory that lets a warp read pairs of eight rows at once without conflicts.
__host__ __device__ constexpr int rowDistance(int depth) {
  return roundedUp(depth + 24, 32) - 24;
}
static_assert(rowDistance(504) % 32 == 8 && rowDistance(504) >= 504 && rowDistance(8) == 8);

/// A product of patches of one image with the rows of a matrix: the forward pass, or the gradient of the
/// input, which is a convolution of the output's gradient with mirrored weights.
struct Product {
  int planes, height, width;      // of the image in global memory
  int top, left;                  // zeros before it
  int paddedHeight, paddedWidth;  // in shared memory
  int kernel[2], dilation[2];
  bool mirrored;
  int outHeight, outWidth, channels;  // of the result
  int weightStep;                     // from one result channel's weights to the next's
  int planeStep;                      // from one plane's weights to the next's

  __host__ __device__ int window() const { return kernel[0] * kernel[1]; }
  __host__ __device__ int depth() const { return planes * window(); }
  __host__ __device__ int paddedDepth() const { return roundedUp(depth(), kTileDepth); }
  __host__ __device__ int pixels() const { return outHeight * outWidth; }
  __host__ __device__ int imageFloats() const { return planes * paddedHeight * paddedWidth; }
  /// Where the image's number for place k of the sum is, from the first number of a patch on.
  __device__ int place(int k) const {
    const int plane = k / window(), tap = k % window();
    int row = tap / kernel[1], column = tap % kernel[1];
    if (mirrored) {
      row = kernel[0] - 1 - row;
      column = kernel[1] - 1 - column;
    }
    return (plane * paddedHeight + row * dilation[0]) * paddedWidth + column * dilation[1];
  }
  __device__ int weightPlace(int k) const { return k / window() * planeStep + k % window(); }
};

Product forwardOf(const DirectCall& c) {
  return {.planes = c.inChannels,
          .height = c.height,
          .width = c.width,
          .top = c.padding[0],
          .left = c.padding[1],
          .paddedHeight = c.height + 2 * c.padding[0],
          .paddedWidth = c.width + 2 * c.padding[1],
          .kernel = {c.kernel[0], c.kernel[1]},
          .dilation = {c.dilation[0], c.dilation[1]},
          .mirrored = false,
          .outHeight = c.outHeight,
          .outWidth = c.outWidth,
          .channels = c.outChannels,
          .weightStep = c.inChannels * c.kernel[0] * c.kernel[1],
          .planeStep = c.kernel[0] * c.kernel[1]};
}

Product dataOf(const DirectCall& c) {
  const int reach[2] = {(c.kernel[0] - 1) * c.dilation[0], (c.kernel[1] - 1) * c.dilation[1]};
  return {.planes = c.outChannels,
          .height = c.outHeight,
          .width = c.outWidth,
          .top = reach[0] - c.padding[0],
          .left = reach[1] - c.padding[1],
          .paddedHeight = c.height + reach[0],
          .paddedWidth = c.width + reach[1],
          .kernel = {c.kernel[0], c.kernel[1]},
          .dilation = {c.dilation[0], c.dilation[1]},
          .mirrored = true,
          .outHeight = c.height,
          .outWidth = c.width,
          .channels = c.inChannels,
          .weightStep = c.kernel[0] * c.kernel[1],
          .planeStep = c.inChannels * c.kernel[0] * c.kernel[1]};
}

/// How a block's warps share a product: each computes rowTiles x columnTiles tiles of a part of the sums.
struct Division {
  int rowTiles, columnTiles, rowGroups, columnGroups, parts;

  __host__ __device__ int rows() const { return rowGroups * rowTiles * kTileRows; }
  __host__ __device__ int columns() const { return columnGroups * columnTiles * kTileColumns; }
  /// The distance of a part's result channels in shared memory, which avoids conflicts.
  __host__ __device__ int channelDistance() const { return rows() + 4; }
};

/// The division that reads shared memory least often: a tile of rows takes four reads, one of columns two.
Division divide(int pixels, int channels) {
  const int rowTiles = ceiling(pixels, kTileRows), columnTiles = ceiling(channels, kTileColumns);
  Division best{};
  int least = 0;
  for (int rows = 2; rows <= 3; ++rows)
    for (int columns = 1; columns <= 4; ++columns) {
      const int rowGroups = ceiling(rowTiles, rows), columnGroups = ceiling(columnTiles, columns);
      const int reads = rowGroups * columnGroups * (4 * rows + 2 * columns + 1);
      if (best.rowTiles != 0 && reads >= least) continue;
      least = reads;
      best = {rows, columns, rowGroups, columnGroups, std::max(1, kWarps / (rowGroups * columnGroups))};
    }
  return best;
}

/// Places of a block's shared memory, in floats.
struct Room {
  int weights, places, all;  // the image is first; the parts of the results later replace it and the weights
};
__host__ __device__ Room roomOf(const Product& p, const Division& d) {
  Room room{};
  room.weights = roundedUp(p.imageFloats(), 4);
  room.places = room.weights + d.columns() * rowDistance(p.paddedDepth());
  room.all =
      room.places + p.paddedDepth() / 2 + p.paddedDepth();  // two places in a number; places of weights
  const int results = d.parts * d.columns() * d.channelDistance();
  room.all = room.all > results ? room.all : results;
  return room;
}

/// The nearest number with ten bits after the leading one.
__device__ float toTf32(float value) {
#if __CUDA_ARCH__ >= 800
  std::uint32_t bits = 0;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
#else
  return value;
#endif
}

/// sums += a b
__device__ void multiply(float (&sums)[4], const float (&a)[4], float2 b) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b.x)), "r"(__float_as_uint(b.y)));
#else
  __trap();  // built for an older GPU: without tensor cores for TF32
#endif
}

__device__ void fillZero(float* to, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) to[i] = 0.0f;
}

/// Rounds an image into its place between zeros.
__device__ void loadImage(const Product& p, const float* from, float* to) {
  const int count = p.planes * p.height * p.width;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const int line = i / p.width, plane = line / p.height;
    to[(plane * p.paddedHeight + line % p.height + p.top) * p.paddedWidth + i % p.width + p.left] =
        toTf32(from[i]);
  }
}

/// A block computes a sample.
template <int kRowTiles, int kColumnTiles>
__global__ void __launch_bounds__(kThreads)
    implicitProductKernel(Product p, Division d, const float* image, const float* weight, const float* bias,
                          bool relu, float* result) {
  extern __shared__ float4 shared[];
  auto* const input = reinterpret_cast<float*>(shared);
  const Room room = roomOf(p, d);
  float* const weights = input + room.weights;
  auto* const places = reinterpret_cast<ushort2*>(input + room.places);
  auto* const weightPlaces = reinterpret_cast<int*>(places + p.paddedDepth() / 2);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int group = lane / 4, pair = lane % 4;
  const int depth = p.depth(), padded = p.paddedDepth(), distance = rowDistance(padded);

  fillZero(input, p.imageFloats());
  for (int k = static_cast<int>(threadIdx.x); k < padded; k += kThreads) {
    reinterpret_cast<unsigned short*>(places)[k] = static_cast<unsigned short>(k < depth ? p.place(k) : 0);
    weightPlaces[k] = k < depth ? p.weightPlace(k) : -1;
  }
  __syncthreads();
  loadImage(p, image + static_cast<std::int64_t>(blockIdx.x) * p.planes * p.height * p.width, input);
  for (int channel = warp; channel < d.columns(); channel += kWarps)
#pragma unroll 8
    for (int k = lane; k < padded; k += 32) {
      const int place = weightPlaces[k];
      weights[channel * distance + k] =
          channel < p.channels && place >= 0 ? toTf32(weight[channel * p.weightStep + place]) : 0.0f;
    }
  __syncthreads();

  const int part = warp % d.parts, tile = warp / d.parts;
  const bool works = tile < d.rowGroups * d.columnGroups;
  const int firstRow = tile % d.rowGroups * kRowTiles * kTileRows;
  const int firstColumn = tile / d.rowGroups * kColumnTiles * kTileColumns;
  float sums[kRowTiles][kColumnTiles][4] = {};
  if (works) {
    int from[kRowTiles][2];
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int pixel = min(firstRow + r * kTileRows + half * 8 + group, p.pixels() - 1);
        from[r][half] = pixel / p.outWidth * p.paddedWidth + pixel % p.outWidth;
      }
    const float* const mine = weights + (firstColumn + group) * distance + 2 * pair;
    const auto step = [&](int s, bool whole) {
      const ushort2 two = places[s * (kTileDepth / 2) + pair];
      const int first = two.x, second = two.y;
      const int k = s * kTileDepth + 2 * pair;
      float2 b[kColumnTiles];
#pragma unroll
      for (int c = 0; c < kColumnTiles; ++c)
        b[c] = *reinterpret_cast<const float2*>(mine + c * kTileColumns * distance + s * kTileDepth);
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        float a[4] = {input[from[r][0] + first], input[from[r][1] + first], input[from[r][0] + second],
                      input[from[r][1] + second]};
        if (!whole) {
          if (k >= depth) a[0] = a[1] = 0.0f;
          if (k + 1 >= depth) a[2] = a[3] = 0.0f;
        }
#pragma unroll
        for (int c = 0; c < kColumnTiles; ++c) multiply(sums[r][c], a, b[c]);
      }
    };
    const int steps = padded / kTileDepth, whole = depth / kTileDepth;
    const int begin = part * steps / d.parts, end = (part + 1) * steps / d.parts;
#pragma unroll 4
    for (int s = begin; s < min(end, whole); ++s) step(s, true);
    if (whole >= begin && whole < end) step(whole, false);
  }
  __syncthreads();  // all threads have read the image and the weights: the parts replace them

  const int channelDistance = d.channelDistance();
  if (works)
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
      for (int c = 0; c < kColumnTiles; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = firstRow + r * kTileRows + group + i / 2 * 8;
          const int column = firstColumn + c * kTileColumns + 2 * pair + i % 2;
          input[(part * d.columns() + column) * channelDistance + row] = sums[r][c][i];
        }
  __syncthreads();
  float* const to = result + static_cast<std::int64_t>(blockIdx.x) * p.channels * p.pixels();
  for (int i = static_cast<int>(threadIdx.x); i < p.channels * p.pixels(); i += kThreads) {
    const int channel = i / p.pixels(), pixel = i % p.pixels();
    float sum = bias ? bias[channel] : 0.0f;
    for (int other = 0; other < d.parts; ++other)
      sum += input[(other * d.columns() + channel) * channelDistance + pixel];
    to[i] = relu && sum < 0.0f ? 0.0f : sum;
  }
}

std::size_t bytesOf(const Product& p, const Division& d) {
  return static_cast<std::size_t>(roomOf(p, d).all) * sizeof(float);
}

/// Launches a kernel with up to all shared memory of the GPU; a block gets only 48 KiB unasked. It always
/// asks for all, because threads with other sizes may launch the same kernel.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 blocks, int threads, std::size_t bytes,
                   cudaStream_t stream, Arguments... arguments) {
  int device = 0, most = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (const cudaError_t error =
          cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      error != cudaSuccess)
    return error;
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
      error != cudaSuccess)
    return error;
  kernel<<<blocks, static_cast<unsigned>(threads), bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

cudaError_t launchProduct(const Product& p, int samples, const float* image, const float* weight,
                          const float* bias, bool relu, float* result, cudaStream_t stream) {
  const Division d = divide(p.pixels(), p.channels);
  using Kernel = void (*)(Product, Division, const float*, const float*, const float*, bool, float*);
  constexpr std::array<std::array<Kernel, 4>, 2> kKernels{{
      {implicitProductKernel<2, 1>, implicitProductKernel<2, 2>, implicitProductKernel<2, 3>,
       implicitProductKernel<2, 4>},
      {implicitProductKernel<3, 1>, implicitProductKernel<3, 2>, implicitProductKernel<3, 3>,
       implicitProductKernel<3, 4>},
  }};
  const Kernel kernel =
      kKernels[static_cast<std::size_t>(d.rowTiles - 2)][static_cast<std::size_t>(d.columnTiles - 1)];
  return launch(kernel, dim3(static_cast<unsigned>(samples)), kThreads, bytesOf(p, d), stream, p, d, image,
                weight, bias, relu, result);
}

/// How the gradient of the weights is shared: a block takes `columnTiles` tiles of a group of samples; each
/// of its warps takes kWeightColumnTiles of them, and a part of the pixels.
struct WeightsDivision {
  int groups, slices, columnWarps, parts;

  __host__ __device__ int sums() const { return groups * parts; }
};

WeightsDivision divideWeights(const DirectCall& c) {
  const int tiles = ceiling(tapsOf(c), kTileColumns), warps = ceiling(tiles, kWeightColumnTiles);
  const int columnWarps = std::min(warps, kWarps);
  return {.groups = std::min(c.samples, kMostGroups),
          .slices = ceiling(warps, columnWarps),
          .columnWarps = columnWarps,
          .parts = kWarps / columnWarps};
}

/// Places of a block's shared memory, in floats; the image is first.
struct WeightsRoom {
  int gradients, places, all;
};
__host__ __device__ WeightsRoom weightsRoomOf(const Product& p) {
  const int pixels = roundedUp(p.pixels(), kTileDepth), rows = roundedUp(p.channels, kTileRows);
  WeightsRoom room{};
  room.gradients = roundedUp(p.imageFloats(), 4);
  room.places = room.gradients + rows * rowDistance(pixels);
  room.all = room.places + pixels / 2;
  return room;
}

template <int kRowTiles>
__global__ void __launch_bounds__(kThreads)
    implicitWeightsKernel(Product p, WeightsDivision d, int samples, const float* x, const float* gradY,
                          float* sums) {
  extern __shared__ float4 shared[];
  auto* const input = reinterpret_cast<float*>(shared);
  const WeightsRoom room = weightsRoomOf(p);
  float* const gradients = input + room.gradients;
  auto* const places = reinterpret_cast<ushort2*>(input + room.places);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 4, pair = lane % 4;
  const int pixels = p.pixels(), padded = roundedUp(pixels, kTileDepth), distance = rowDistance(padded);
  const int depth = p.depth();

  fillZero(input, room.places);  // image and gradients
  for (int i = static_cast<int>(threadIdx.x); i < padded; i += kThreads)
    reinterpret_cast<unsigned short*>(places)[i] =
        static_cast<unsigned short>(i < pixels ? i / p.outWidth * p.paddedWidth + i % p.outWidth : 0);

  const int columnWarp = warp % d.columnWarps, part = warp / d.columnWarps;
  const int firstTile = (static_cast<int>(blockIdx.x) * d.columnWarps + columnWarp) * kWeightColumnTiles;
  int from[kWeightColumnTiles];
#pragma unroll
  for (int c = 0; c < kWeightColumnTiles; ++c) {
    const int column = (firstTile + c) * kTileColumns + row;
    from[c] = column < depth ? p.place(column) : 0;
  }
  float all[kRowTiles][kWeightColumnTiles][4] = {};
  const int group = static_cast<int>(blockIdx.y);
  const auto begin = static_cast<int>(static_cast<std::int64_t>(group) * samples / d.groups);
  const auto end = static_cast<int>((static_cast<std::int64_t>(group) + 1) * samples / d.groups);
  for (int sample = begin; sample < end; ++sample) {
    __syncthreads();
    loadImage(p, x + static_cast<std::int64_t>(sample) * p.planes * p.height * p.width, input);
    const float* const gradient = gradY + static_cast<std::int64_t>(sample) * p.channels * pixels;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < p.channels * pixels; i += kThreads)
      gradients[i / pixels * distance + i % pixels] = toTf32(gradient[i]);
    __syncthreads();
    if (part >= d.parts) continue;
    const auto step = [&](int s, bool whole) {
      const ushort2 two = places[s * (kTileDepth / 2) + pair];
      const int first = two.x, second = two.y;
      const int k = s * kTileDepth + 2 * pair;
      float2 b[kWeightColumnTiles];
#pragma unroll
      for (int c = 0; c < kWeightColumnTiles; ++c) {
        b[c] = {input[from[c] + first], input[from[c] + second]};
        if (!whole) {
          if (k >= pixels) b[c].x = 0.0f;
          if (k + 1 >= pixels) b[c].y = 0.0f;
        }
      }
      const float* const mine = gradients + row * distance + k;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        const float2 upper = *reinterpret_cast<const float2*>(mine + r * kTileRows * distance);
        const float2 lower = *reinterpret_cast<const float2*>(mine + (r * kTileRows + 8) * distance);
        const float a[4] = {upper.x, lower.x, upper.y, lower.y};
#pragma unroll
        for (int c = 0; c < kWeightColumnTiles; ++c) multiply(all[r][c], a, b[c]);
      }
    };
    const int steps = padded / kTileDepth, whole = pixels / kTileDepth;
    const int firstStep = part * steps / d.parts, lastStep = (part + 1) * steps / d.parts;
#pragma unroll 2
    for (int s = firstStep; s < min(lastStep, whole); ++s) step(s, true);
    if (whole >= firstStep && whole < lastStep) step(whole, false);
  }
  if (part >= d.parts) return;
  float* const to = sums + static_cast<std::int64_t>(group * d.parts + part) * p.channels * depth;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r)
#pragma unroll
    for (int c = 0; c < kWeightColumnTiles; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int channel = r * kTileRows + row + i / 2 * 8;
        const int column = (firstTile + c) * kTileColumns + 2 * pair + i % 2;
        if (channel < p.channels && column < depth) to[channel * depth + column] = all[r][c][i];
      }
}

/// Adds the parts: 32 numbers per block, kSumThreads threads per number.
__global__ void __launch_bounds__(kBlockThreads)
    implicitSumKernel(int parts, int count, const float* sums, float* result) {
  __shared__ double partial[kSumThreads][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int i = static_cast<int>(blockIdx.x) * 32 + lane;
  double sum = 0;
  if (i < count)
#pragma unroll 8
    for (int part = group; part < parts; part += kSumThreads)
      sum += sums[static_cast<std::int64_t>(part) * count + i];
  partial[group][lane] = sum;
  __syncthreads();
  if (group != 0 || i >= count) return;
  for (int other = 1; other < kSumThreads; ++other) sum += partial[other][lane];
  result[i] = static_cast<float>(sum);
}
static_assert(kBlockThreads == 32 * kSumThreads);

bool fits(const Product& p) {
  constexpr int kMostPlaces = 1 << 16;  // a place has 16 bits
  const Division d = divide(p.pixels(), p.channels);
  return p.top >= 0 && p.left >= 0 && p.imageFloats() < kMostPlaces && d.rowGroups * d.columnGroups <= kWarps;
}

}  // namespace

bool implicitGemmSuits(const DirectCall& c) {
  return c.stride[0] == 1 && c.stride[1] == 1 && c.outChannels <= kMostRowTiles * kTileRows &&
         fits(forwardOf(c)) && fits(dataOf(c));
}

std::int64_t implicitForwardBytes(const DirectCall& c) {
  const Product p = forwardOf(c);
  return static_cast<std::int64_t>(bytesOf(p, divide(p.pixels(), p.channels)));
}

std::int64_t implicitDataBytes(const DirectCall& c) {
  const Product p = dataOf(c);
  return static_cast<std::int64_t>(bytesOf(p, divide(p.pixels(), p.channels)));
}

std::int64_t implicitWeightsBytes(const DirectCall& c) {
  return std::int64_t{weightsRoomOf(forwardOf(c)).all} * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t implicitPartFloats(const DirectCall& c) {
  return std::int64_t{divideWeights(c).sums()} * c.outChannels * tapsOf(c);
}

cudaError_t launchImplicitForward(const DirectCall& c, const float* x, const float* weight, const float* bias,
                                  bool relu, float* y, cudaStream_t stream) {
  return launchProduct(forwardOf(c), c.samples, x, weight, bias, relu, y, stream);
}

cudaError_t launchImplicitData(const DirectCall& c, const float* gradY, const float* weight, float* gradX,
                               cudaStream_t stream) {
  return launchProduct(dataOf(c), c.samples, gradY, weight, nullptr, false, gradX, stream);
}

cudaError_t launchImplicitWeights(const DirectCall& c, const float* x, const float* gradY, float* parts,
                                  float* gradWeight, cudaStream_t stream) {
  const Product p = forwardOf(c);
  const WeightsDivision d = divideWeights(c);
  using Kernel = void (*)(Product, WeightsDivision, int, const float*, const float*, float*);
  constexpr std::array<Kernel, kMostRowTiles> kKernels{implicitWeightsKernel<1>, implicitWeightsKernel<2>,
                                                       implicitWeightsKernel<3>, implicitWeightsKernel<4>};
  const Kernel kernel = kKernels[static_cast<std::size_t>(ceiling(c.outChannels, kTileRows) - 1)];
  const dim3 blocks(static_cast<unsigned>(d.slices), static_cast<unsigned>(d.groups));
  if (const cudaError_t error =
          launch(kernel, blocks, kThreads, static_cast<std::size_t>(implicitWeightsBytes(c)), stream, p, d,
                 c.samples, x, gradY, parts);
      error != cudaSuccess)
    return error;
  const int count = c.outChannels * tapsOf(c);
  implicitSumKernel<<<static_cast<unsigned>(ceiling(count, 32)), kBlockThreads, 0, stream>>>(
      d.sums(), count, parts, gradWeight);
  return cudaGetLastError();
}

}  // namespace muster::cuda
