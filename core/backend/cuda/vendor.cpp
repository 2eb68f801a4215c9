#include "muster/core/backend/cuda/vendor.h"

#include <dlfcn.h>

#include "muster/core/backend/cuda/library_places.h"
#include "muster/core/base/error.h"

namespace muster::cuda {

void* openLibrary(const char* name, const char* builtBeside) {
  if (void* library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  const std::string first = ::dlerror();
  auto places = usualPlaces(name);
  places.insert(places.begin(), fmt::format("{}/{}", builtBeside, name));
  for (const auto& path : places)
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  throw DeviceUnavailable(fmt::format(
      "CUDA: {} cannot be loaded ({}); set LD_LIBRARY_PATH to the folder that it lies in", name, first));
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

DnnLibrary loadDnn() {
  blas();  // which cuDNN looks for by its name
  const char* const name = "libcudnn.so.9";
  void* const library = openLibrary(name, MUSTER_CUDNN_DIRECTORY);
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
