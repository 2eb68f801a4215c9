#include "muster/parallel/elastic/directory_store.h"

#include <fstream>
#include <random>
#include <system_error>

#include "muster/parallel/exchange/node_transport.h"

namespace muster {
namespace {

/// The end of the names of files that are not complete yet.
constexpr std::string_view kPart = ".part";

std::string drawn() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

DirectoryStore::DirectoryStore(std::filesystem::path directory)
    : directory_(std::move(directory)), number_(drawn()) {
  std::error_code problem;
  std::filesystem::create_directories(directory_, problem);
  if (!std::filesystem::is_directory(directory_))
    throw NodeFailure(fmt::format("the store {} is not a directory and cannot be created: {}",
                                  directory_.string(), problem.message()));
}

void DirectoryStore::fail(const std::filesystem::path& path, const std::error_code& problem) {
  throw NodeFailure(fmt::format("the store: {} cannot be written: {}", path.string(), problem.message()));
}

std::filesystem::path DirectoryStore::writePart(const std::string& name, const std::string& text) {
  auto part = directory_ / fmt::format("{}.{}-{}{}", name, number_, ++parts_, kPart);
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  if (file) return part;
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  fail(directory_ / name, std::make_error_code(std::errc::io_error));
}

void DirectoryStore::put(const std::string& name, const std::string& text) {
  const auto path = directory_ / name;
  const auto part = writePart(name, text);
  std::error_code problem, ignored;
  std::filesystem::rename(part, path, problem);
  if (!problem) return;
  std::filesystem::remove(part, ignored);
  fail(path, problem);
}

/// Creates a hard link to a complete file: only one process can create a given name.
bool DirectoryStore::create(const std::string& name, const std::string& text) {
  const auto path = directory_ / name;
  const auto part = writePart(name, text);
  std::error_code problem, ignored;
  std::filesystem::create_hard_link(part, path, problem);
  std::filesystem::remove(part, ignored);
  if (!problem) return true;
  if (problem == std::errc::file_exists) return false;
  fail(path, problem);
}

std::string DirectoryStore::get(const std::string& name) {
  std::string text(kMostBytes, '\0');
  std::ifstream file(directory_ / name, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.gcount() == static_cast<std::streamsize>(text.size())) return {};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

void DirectoryStore::erase(const std::string& name) {
  std::error_code problem;
  std::filesystem::remove(directory_ / name, problem);
  if (problem) fail(directory_ / name, problem);
}

std::vector<std::string> DirectoryStore::names(const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code problem;
  for (std::filesystem::directory_iterator it(directory_, problem), end; !problem && it != end;
       it.increment(problem))
    if (auto name = it->path().filename().string(); name.starts_with(prefix) && !name.ends_with(kPart))
      found.push_back(std::move(name));
  if (problem)
    throw NodeFailure(
        fmt::format("the store: {} cannot be read: {}", directory_.string(), problem.message()));
  return found;
}

}  // namespace muster
