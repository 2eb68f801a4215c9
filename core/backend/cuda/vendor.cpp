#include "muster/core/backend/cuda/vendor.h"

#include <dlfcn.h>
#include <unistd.h>

#include "muster/core/backend/cuda/library_places.h"
#include "muster/core/base/error.h"

namespace muster::cuda {

namespace {

std::string_view lastError() {
  const char* const error = ::dlerror();
  return error ? error : "no reason was given";
}

/// What is in the way of the library's use, or "" where it is open for all.
std::string open(const char* file, const std::function<std::string(void*)>& whyNot, void*& library) {
  // Until it is known to be the one, its functions are nobody's: others of the same names may come after it.
  library = ::dlopen(file, RTLD_NOW | (whyNot ? RTLD_LOCAL : RTLD_GLOBAL));
  if (!library) return std::string(lastError());
  if (!whyNot) return "";
  if (auto reason = whyNot(library); !reason.empty()) {
    ::dlclose(library);
    return fmt::format("{}: {}", file, reason);
  }
  return ::dlopen(file, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) ? "" : std::string(lastError());
}

}  // namespace

void* openLibrary(const char* name, const char* builtBeside,
                  const std::function<std::string(void* library)>& whyNot) {
  void* library = nullptr;
  std::string reasons = open(name, whyNot, library);
  if (reasons.empty()) return library;
  auto places = usualPlaces(name);
  places.insert(places.begin(), fmt::format("{}/{}", builtBeside, name));
  for (const auto& path : places) {
    if (::access(path.c_str(), F_OK) != 0) continue;
    const auto reason = open(path.c_str(), whyNot, library);
    if (reason.empty()) return library;
    if (reasons.find(reason) == std::string::npos) reasons += "; " + reason;
  }
  throw DeviceUnavailable(fmt::format(
      "CUDA: {} cannot be loaded ({}); set LD_LIBRARY_PATH to the folder that it lies in", name, reasons));
}

void* functionOf(void* library, const char* libraryName, const char* name) {
  if (void* function = ::dlsym(library, name)) return function;
  throw DeviceUnavailable(fmt::format("CUDA: {} has no function {}", libraryName, name));
}

namespace {

template <typename Function>
void find(void* library, const char* libraryName, const char* name, Function& function) {
  function = reinterpret_cast<Function>(functionOf(library, libraryName, name));
}

#define MUSTER_FIND(function) find(library, name, #function, table.function);

BlasLibrary loadBlas() {
  const char* const name = MUSTER_CUBLASLT_SONAME;
  void* const library = openLibrary(name, MUSTER_CUBLASLT_DIRECTORY);
  BlasLibrary table;
  MUSTER_CUBLASLT_FUNCTIONS(MUSTER_FIND)
  return table;
}

constexpr const char* kDnnName = "libcudnn.so.9";

/// cuDNN's library has the same name for every CUDA, and would look for another one's cuBLASLt.
std::string whyNotForOurCuda(void* library) {
  decltype(&::cudnnGetCudartVersion) version = nullptr;
  find(library, kDnnName, "cudnnGetCudartVersion", version);
  const auto its = version() / 1000, ours = std::size_t{CUDART_VERSION / 1000};
  return its == ours ? "" : fmt::format("it is for CUDA {}, and this build is for CUDA {}", its, ours);
}

DnnLibrary loadDnn() {
  blas();  // which cuDNN looks for by its name
  const char* const name = kDnnName;
  void* const library = openLibrary(name, MUSTER_CUDNN_DIRECTORY, whyNotForOurCuda);
  DnnLibrary table;
  MUSTER_CUDNN_FUNCTIONS(MUSTER_FIND)
  return table;
}

#undef MUSTER_FIND

}  // namespace

const BlasLibrary& blas() {
  static const BlasLibrary library = loadBlas();
  return library;
}

const DnnLibrary& dnn() {
  static const DnnLibrary library = loadDnn();
  return library;
}

}  // namespace muster::cuda
