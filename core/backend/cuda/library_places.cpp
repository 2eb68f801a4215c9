#include "muster/core/backend/cuda/library_places.h"

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace muster::cuda {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

/// The installation prefix of the first `python3` in PATH, or its virtual environment; "" if there is none.
std::string pythonPrefix() {
  std::istringstream path(variable("PATH"));
  for (std::string folder; std::getline(path, folder, ':');)
    if (const auto program = folder + "/python3"; ::access(program.c_str(), X_OK) == 0)
      return std::filesystem::path(folder).parent_path().string();
  return "";
}

void addMatches(const std::string& pattern, std::vector<std::string>& files) {
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
}

}  // namespace

std::vector<std::string> usualPlaces(std::string_view name) {
  std::vector<std::string> files;
  for (const char* folder : {"cuda/lib64", "cuda/lib", "cuda-*/lib64", "cuda-*/lib"})
    addMatches(fmt::format("/usr/local/{}/{}", folder, name), files);
  const auto home = variable("HOME");
  for (const auto& prefix :
       {variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"), home.empty() ? home : home + "/.local",
        pythonPrefix(), std::string("/usr/local"), std::string("/usr")})
    if (!prefix.empty())
      addMatches(fmt::format("{}/lib/python3*/*-packages/nvidia/*/lib/{}", prefix, name), files);
  return files;
}

}  // namespace muster::cuda
