#include "muster/core/io/detail/model_checksums.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "tests/support/thrown.h"

namespace muster {
namespace {

Safetensors checked() {
  Safetensors file;
  file.metadata["note"] = "text";
  for (const auto* name : {"a", "b"}) {
    Tensor values = Tensor::zeros({2, 3});
    values.data<float>()[4] = 1;
    file.add(name, values);
  }
  detail::addChecksums(file);
  return file;
}

/// What the checks of header and tensors say; "" if both pass.
std::pair<std::string, std::string> said(const Safetensors& file) {
  return {test::thrown<FileError>([&] { detail::requireHeaderChecksum(file, "m"); }),
          test::thrown<FileError>([&] { detail::requireTensorChecksums(file, "m"); })};
}

TEST_CASE("a file as it was written passes, and so does one of an early version without checksums") {
  CHECK(said(checked()) == std::pair<std::string, std::string>{});
  Safetensors without = checked();
  std::erase_if(without.metadata, [](const auto& one) { return detail::isOfChecksums(one.first); });
  CHECK(without.metadata.size() == 1);
  CHECK(said(without) == std::pair<std::string, std::string>{});
}

TEST_CASE("a changed bit of a tensor is named") {
  Safetensors file = checked();
  file.tensors[1].values.data<float>()[5] = -0.0f;
  const auto [header, tensors] = said(file);
  CHECK(header.empty());
  CHECK(tensors.find("tensor \"b\" is damaged: its checksum does not match") != std::string::npos);
}

TEST_CASE("a changed header is damaged: notes, names, shapes and types, or the checksums' own name") {
  struct Row {
    const char* what;
    void (*damage)(Safetensors&);
  };
  for (const Row& row : {Row{"a note's text", [](Safetensors& f) { f.metadata["note"] = "tex"; }},
                         Row{"a note's name",
                             [](Safetensors& f) {
                               f.metadata.erase("note");
                               f.metadata["notf"] = "text";
                             }},
                         Row{"a name and its text that add up to the same",
                             [](Safetensors& f) {
                               f.metadata.erase("note");
                               f.metadata["notet"] = "ext";
                             }},
                         Row{"a tensor's name", [](Safetensors& f) { f.tensors[0].name = "c"; }},
                         Row{"a shape",
                             [](Safetensors& f) {
                               f.tensors[0].values = Tensor::zeros({3, 2});
                             }},
                         Row{"a type",
                             [](Safetensors& f) {
                               f.tensors[0].values = Tensor::zeros({2, 3}, DType::UInt8);
                             }},
                         Row{"checksums", [](Safetensors& f) { f.metadata.erase("muster.crc32"); }}}) {
    CAPTURE(row.what);
    Safetensors file = checked();
    row.damage(file);
    CHECK(said(file).first.find("is damaged: the checksum does not match") != std::string::npos);
  }
}

TEST_CASE("checksums that are no object of JSON are refused") {
  for (const char* text : {"", "[]", "{"}) {
    CAPTURE(text);
    Safetensors file = checked();
    file.metadata["muster.crc32"] = text;
    CHECK(said(file).first.find("its checksums are") != std::string::npos);
    CHECK(said(file).second.find("its checksums are") != std::string::npos);
  }
}

}  // namespace
}  // namespace muster
