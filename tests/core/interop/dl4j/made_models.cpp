#include "tests/core/interop/dl4j/made_models.h"

#include <fmt/ranges.h>

#include <bit>

#include "muster/core/base/error.h"
#include "muster/core/interop/dl4j/detail/zip_file.h"
#include "tests/support/standard.h"

namespace muster::test {
namespace {

void put(std::string& bytes, std::uint64_t value, int size) {
  for (int shift = 8 * size - 8; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
}

void putText(std::string& bytes, const std::string& text) {
  put(bytes, text.size(), 2);
  bytes += text;
}

/// Half precision of a whole number up to 2048.
std::uint64_t halfOf(float value) {
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
  return (value < 0 ? 0x8000U : 0U) | static_cast<std::uint64_t>(exponent + 14) << 10 |
         static_cast<std::uint64_t>((2 * fraction - 1) * 1024);
}

constexpr const char* kDense =
    R"("activationFn":{"@class":"org.nd4j.linalg.activations.impl.ActivationIdentity"},"hasBias":true,)"
    R"("iupdater":{"@class":"org.nd4j.linalg.learning.config.Sgd","learningRate":0.5})";

}  // namespace

ZipEntries entriesOf(const std::filesystem::path& path) {
  const dl4j::detail::ZipFile zip(path);
  ZipEntries entries;
  for (const char* name :
       {"configuration.json", "coefficients.bin", "updaterState.bin", "normalizer.bin", "muster.json"})
    if (auto bytes = zip.read(name, 1 << 24)) entries.emplace_back(name, std::move(*bytes));
  return entries;
}

std::string& entry(ZipEntries& entries, const std::string& name) {
  const auto found = std::ranges::find(entries, name, &ZipEntries::value_type::first);
  require(found != entries.end(), "there is no {}", name);
  return found->second;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  require(at != text.npos && text.find(from, at + 1) == text.npos, "not once in it: {}", from);
  return text.replace(at, from.size(), to);
}

std::string arrayBytes(const std::vector<float>& values, const std::string& type) {
  std::string bytes;
  putText(bytes, "MIXED_DATA_TYPES");
  put(bytes, 8, 8);
  putText(bytes, "LONG");
  for (const std::uint64_t number :
       {std::uint64_t{2}, std::uint64_t{1}, std::uint64_t{values.size()}, std::uint64_t{1}, std::uint64_t{1},
        std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{'c'}})
    put(bytes, number, 8);
  putText(bytes, "MIXED_DATA_TYPES");
  put(bytes, values.size(), 8);
  putText(bytes, type);
  for (const float value : values) {
    if (type == "DOUBLE")
      put(bytes, std::bit_cast<std::uint64_t>(static_cast<double>(value)), 8);
    else if (type == "HALF")
      put(bytes, halfOf(value), 2);
    else
      put(bytes, std::bit_cast<std::uint32_t>(value), 4);
  }
  return bytes;
}

std::string layerJson(const std::string& name, const std::string& className, const std::string& more) {
  return fmt::format(R"({{"@class":"org.deeplearning4j.nn.conf.layers.{}","layerName":"{}"{}{}}})", className,
                     name, more.empty() ? "" : ",", more);
}

std::string denseJson(const std::string& name, int in, int out, const std::string& more) {
  return layerJson(
      name, "DenseLayer",
      fmt::format(R"({},"nin":{},"nout":{}{}{})", kDense, in, out, more.empty() ? "" : ",", more));
}

std::string outputJson(const std::string& name, int in, int out, const std::string& more) {
  return layerJson(
      name, "OutputLayer",
      fmt::format(
          R"({},"nin":{},"nout":{},"lossFn":{{"@class":"org.nd4j.linalg.lossfunctions.impl.LossMSE"}}{}{})",
          kDense, in, out, more.empty() ? "" : ",", more));
}

std::string chainJson(const std::vector<std::string>& layers, const std::string& preprocessors) {
  std::vector<std::string> confs;
  for (const auto& layer : layers) confs.push_back(fmt::format(R"({{"layer":{},"seed":3}})", layer));
  return fmt::format(R"({{"confs":[{}],"inputPreProcessors":{{{}}},"iterationCount":5,"epochCount":2}})",
                     fmt::join(confs, ","), preprocessors);
}

std::string layerVertex(const std::string& layer, const std::string& preprocessor) {
  return fmt::format(
      R"({{"@class":"org.deeplearning4j.nn.conf.graph.LayerVertex","layerConf":{{"layer":{},"seed":3}},"preProcessor":{}}})",
      layer, preprocessor);
}

}  // namespace muster::test
