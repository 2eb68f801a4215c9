#include "muster/core/backend/cuda/vendor.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>

#include "muster/core/backend/cuda/library_places.h"
#include "muster/core/base/error.h"

namespace muster::cuda {

namespace {

std::string_view lastError() {
  const char* const error = ::dlerror();
  return error ? error : "no reason was given";
}

/// Why the library cannot be used; "" if it is now open for the whole process.
std::string open(const char* file, const std::function<std::string(void*)>& whyNot, void*& library) {
  // Use RTLD_LOCAL until the library is checked: a wrong file may define functions of the same names.
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
  throw DeviceUnavailable(
      fmt::format("CUDA: {} cannot be loaded ({}); set LD_LIBRARY_PATH to its folder", name, reasons));
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

// The component libraries that muster calls, each before those that depend on it.
constexpr const char* kDnnParts[] = {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9"};

// The component libraries that cuDNN opens by name for convolutions. Some versions of cuDNN lack some of
// them.
constexpr const char* kDnnMore[] = {"libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9",
                                    "libcudnn_engines_runtime_compiled.so.9",
                                    "libcudnn_engines_tensor_ir.so.9", "libcudnn_ext.so.9"};

/// The file `name` in the directory of an open library or of its link's target; "" if there is none.
std::string beside(void* library, const char* name) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return "";
  const std::filesystem::path file = map->l_name;
  std::error_code ignored;
  for (const auto& folder : {file.parent_path(), std::filesystem::canonical(file, ignored).parent_path()})
    if (::access((folder / name).c_str(), F_OK) == 0) return folder / name;
  return "";
}

DnnLibrary dnnTable(void* library, const char* name) {
  DnnLibrary table;
  MUSTER_CUDNN_FUNCTIONS(MUSTER_FIND)
  return table;
}

DnnLibrary loadDnn() {
  blas();  // load it first: cuDNN searches for cuBLASLt by name
  const char* const name = kDnnName;
  void* const library = openLibrary(name, MUSTER_CUDNN_DIRECTORY, whyNotForOurCuda);
  // Take functions from the parts, see Note [The parts of cuDNN]; the last part depends on the others.
  void* last = nullptr;
  for (const char* part : kDnnParts) {
    last = ::dlopen(beside(library, part).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!last)
      throw DeviceUnavailable(
          fmt::format("CUDA: {}, a part of cuDNN, cannot be loaded ({})", part, lastError()));
  }
  for (const char* part : kDnnMore)
    if (const std::string file = beside(library, part); !file.empty())
      static_cast<void>(::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL));
  return dnnTable(last, name);
}

#undef MUSTER_FIND

}  // namespace

// Note [The parts of cuDNN]
// libcudnn.so.9 only forwards calls to its parts, which it opens by name. It takes a part that is already
// open or that the loader finds, which may be for another CUDA version, and ends the process if it finds
// none. The parts stay open when libcudnn.so.9 is closed. So we use it only to find the parts: we open them
// by path, ask them for their CUDA version, and call them directly. We also open by path the parts that these
// would open by name: a wrong version would fail in the middle of a step.
std::string whyNotForOurCuda(void* library) {
  for (const char* part : kDnnParts)
    if (beside(library, part).empty()) return fmt::format("{} is not beside it", part);
  void* const graph = ::dlopen(beside(library, kDnnParts[0]).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!graph) return std::string(lastError());
  const auto version =
      reinterpret_cast<decltype(&::cudnnGetCudartVersion)>(::dlsym(graph, "cudnnGetCudartVersion"));
  const auto cudaOfLibrary = version ? version() / 1000 : 0, ours = std::size_t{CUDART_VERSION / 1000};
  if (cudaOfLibrary == ours) return "";
  ::dlclose(graph);
  if (!version) return fmt::format("{} has no function cudnnGetCudartVersion", kDnnParts[0]);
  return fmt::format("it is for CUDA {}, and this build is for CUDA {}", cudaOfLibrary, ours);
}

const BlasLibrary& blas() {
  static const BlasLibrary library = loadBlas();
  return library;
}

const DnnLibrary& dnn() {
  static const DnnLibrary library = loadDnn();
  return library;
}

}  // namespace muster::cuda
