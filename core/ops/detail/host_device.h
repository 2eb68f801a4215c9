#pragma once

// For functions of one element that both backends share: CPU loops inline them, kernels call them.
#if defined(__CUDACC__)
#define MUSTER_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define MUSTER_HOST_DEVICE [[gnu::always_inline]] inline
#endif
