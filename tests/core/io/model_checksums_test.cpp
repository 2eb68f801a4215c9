#include "muster/core/io/detail/model_checksums.h"

#include "tests/support/test.h"

namespace muster::test {
namespace {

using Said = std::pair<std::string, std::string>;

Safetensors checked() {
  Safetensors file;
  file.metadata["note"] = "text";
  for (const auto* name : {"a", "b"}) {
    Tensor values = Tensor::zeros({2, 3});
    values.data<float>()[4] = 1;
    file.add(name, values);
  }
  muster::detail::addChecksums(file);
  return file;
}

/// What the checks of header and tensors say; "" if both pass.
Said said(const Safetensors& file) {
  return {thrown<FileError>([&] { muster::detail::requireHeaderChecksum(file, "m"); }),
          thrown<FileError>([&] { muster::detail::requireTensorChecksums(file, "m"); })};
}

TEST_CASE("a file as it was written passes, and so does one of an early version without checksums") {
  CHECK(said(checked()) == Said());
  Safetensors without = checked();
  std::erase_if(without.metadata, [](const auto& one) { return muster::detail::isOfChecksums(one.first); });
  CHECK(without.metadata.size() == 1);
  CHECK(said(without) == Said());
}

TEST_CASE("a changed bit of a tensor is named") {
  Safetensors file = checked();
  file.tensors[1].values.data<float>()[5] = -0.0f;
  const auto [header, tensors] = said(file);
  CHECK(header.empty());
  CHECK_CONTAINS(tensors, "tensor \"b\" is damaged: its checksum does not match");
}

TEST_CASE("a changed header is damaged: notes, names, shapes and types, or the checksums' own name") {
  const auto damaged = [](const std::function<void(Safetensors&)>& damage) {
    Safetensors file = checked();
    damage(file);
    return contains(said(file).first, "is damaged: the checksum does not match");
  };
  for (const auto& [name, text] : {std::pair("note", "tex"), {"notf", "text"}, {"notet", "ext"}})
    CHECK(damaged([&](auto& f) {  // the last add up to the same
      f.metadata.erase("note");
      f.metadata[name] = text;
    }));
  CHECK(damaged([](auto& f) { f.tensors[0].name = "c"; }));
  CHECK(damaged([](auto& f) { f.tensors[0].values = Tensor::zeros({3, 2}); }));
  CHECK(damaged([](auto& f) { f.tensors[0].values = Tensor::zeros({2, 3}, DType::UInt8); }));
  CHECK(damaged([](auto& f) { f.metadata.erase("muster.crc32"); }));
}

TEST_CASE("checksums that are no object of JSON are refused") {
  for (const char* text : {"", "[]", "{"}) {
    CAPTURE(text);
    Safetensors file = checked();
    file.metadata["muster.crc32"] = text;
    CHECK_CONTAINS(said(file).first, "its checksums are");
    CHECK_CONTAINS(said(file).second, "its checksums are");
  }
}

}  // namespace
}  // namespace muster::test
