#include "muster/core/backend/cpu/onednn.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <filesystem>
#include <string_view>

#include "muster/core/base/error.h"

namespace muster::cpu {

void check(dnnl_status_t status, const char* call, std::source_location where) {
  if (status == dnnl_success) [[likely]]
    return;
  const std::string_view source = call;  // the message omits its arguments, which mean nothing to users
  const auto text = fmt::format("oneDNN: {} failed with {} at {}:{}", source.substr(0, source.find('(')),
                                dnnl_status2str(status),
                                std::filesystem::path(where.file_name()).filename().string(), where.line());
  if (status == dnnl_out_of_memory) throw OutOfMemory(text);
  throw DeviceFailure(text);
}

dnnl::memory::desc activationDesc(const Shape& shape, Layout layout, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  const auto tag = layout == Layout::RowMajor       ? Tag::nchw
                   : layout == Layout::ChannelsLast ? Tag::nhwc
                                                    : Tag::nChw16c;
  require(layout != Layout::SampleBlocks, "oneDNN does not know the layout {}", nameOf(layout));
  return {dnnl::memory::dims(shape.begin(), shape.end()), type, tag};
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

std::size_t Execution::add(int argument, const dnnl::memory::desc& desc, void* data) {
  memories_.emplace_back(desc, stream_.get_engine(), data);
  bound_.push_back(data);
  arguments_.push_back({argument, memories_.back().get()});
  return arguments_.size() - 1;
}

void Execution::bind(std::size_t slot, void* data) {
  // oneDNN may zero the padding whenever an address is set.
  if (bound_[slot] == data) return;
  MUSTER_DNNL_CHECK(dnnl_memory_set_data_handle(arguments_[slot].memory, data));
  bound_[slot] = data;
}

void Execution::run() {
  MUSTER_DNNL_CHECK(dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                           static_cast<int>(arguments_.size()), arguments_.data()));
}

}  // namespace muster::cpu
