#include "tests/bench/kernel_trace.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "muster/core/backend/cuda/library_places.h"

namespace muster::bench {
namespace {

// The records of this CUDA's CUPTI; later versions append fields.
#if CUDART_VERSION >= 13000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif
using FillRecord = CUpti_ActivityMemset4;

#define MUSTER_CUPTI_FUNCTIONS(FUNCTION)   \
  FUNCTION(cuptiActivityEnable)            \
  FUNCTION(cuptiActivityFlushAll)          \
  FUNCTION(cuptiActivityGetNextRecord)     \
  FUNCTION(cuptiActivityRegisterCallbacks) \
  FUNCTION(cuptiGetResultString)

struct Cupti {
#define MUSTER_TABLE_MEMBER(function) decltype(&::function) function = nullptr;
  MUSTER_CUPTI_FUNCTIONS(MUSTER_TABLE_MEMBER)
#undef MUSTER_TABLE_MEMBER
};

void* openCupti() {
  const std::string name = fmt::format("libcupti.so.{}", CUDART_VERSION / 1000);
  std::vector<std::string> places{name, fmt::format("{}/{}", MUSTER_CUPTI_DIRECTORY, name),
                                  fmt::format("/usr/local/cuda/extras/CUPTI/lib64/{}", name)};
  for (const auto& place : cuda::usualPlaces(name)) places.push_back(place);
  for (const auto& place : places)
    if (void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  throw std::runtime_error(
      fmt::format("{} was not found (it comes with CUDA's toolkit and with PyTorch)", name));
}

Cupti loadCupti() {
  void* const library = openCupti();
  Cupti table;
#define MUSTER_FIND(function)                                                               \
  table.function = reinterpret_cast<decltype(table.function)>(::dlsym(library, #function)); \
  if (!table.function) throw std::runtime_error("CUPTI has no function " #function);
  MUSTER_CUPTI_FUNCTIONS(MUSTER_FIND)
#undef MUSTER_FIND
  return table;
}

const Cupti& cupti() {
  static const Cupti library = loadCupti();
  return library;
}

void check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cupti().cuptiGetResultString(result, &text);
  throw std::runtime_error(
      fmt::format("CUPTI says {} ({}), in {}", static_cast<int>(result), text ? text : "?", call));
}

#define MUSTER_CUPTI_CHECK(call) check((call), #call)

// CUPTI calls back on its own threads, also while the process exits.
std::mutex mutex;
std::vector<Activity>& seen = *new std::vector<Activity>;  // guarded by mutex

std::string plainName(const char* mangled) {
  if (!mangled) return "(a kernel without a name)";
  int status = 0;
  char* const plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : mangled;
  std::free(plain);
  return name.starts_with("void ") ? name.substr(5) : name;
}

void add(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
      seen.push_back({plainName(kernel.name), kernel.start, kernel.end, kernel.correlationId});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CopyRecord&>(record);
      const char* const direction = copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? " to the GPU"
                                    : copy.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? " to the host"
                                                                                       : "";
      seen.push_back({fmt::format("(copy{})", direction), copy.start, copy.end, copy.correlationId});
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = reinterpret_cast<const FillRecord&>(record);
      seen.push_back({"(memory set)", fill.start, fill.end, fill.correlationId});
      break;
    }
    default:
      break;
  }
}

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

void CUPTIAPI giveBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* mostRecords) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *mostRecords = 0;  // as many as fit
}

void CUPTIAPI takeBuffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  {
    const std::scoped_lock lock(mutex);
    CUpti_Activity* record = nullptr;
    while (cupti().cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) add(*record);
  }
  std::free(buffer);
}

}  // namespace

KernelTrace::KernelTrace() {
  MUSTER_CUPTI_CHECK(cupti().cuptiActivityRegisterCallbacks(giveBuffer, takeBuffer));
  MUSTER_CUPTI_CHECK(cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  MUSTER_CUPTI_CHECK(cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
  MUSTER_CUPTI_CHECK(cupti().cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
}

std::vector<Activity> KernelTrace::take() {
  MUSTER_CUPTI_CHECK(cupti().cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const std::scoped_lock lock(mutex);
  return std::exchange(seen, {});
}

}  // namespace muster::bench
