#include "tensor_files.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "store/tensor_file.h"
#include "store/tensor_slices.h"
#include "store/tensor_stream.h"
#include "tensor_list.h"
#include "world/memory_pool.h"
#include "world/parallel.h"
#include "world/real_world.h"

namespace holdfast::python {
namespace {

namespace py = pybind11;
using store::AlignedBytes;

constexpr unsigned kThreadsMax = 8;

[[noreturn]] void raise(const Error& error) {
  PyObject* kind = PyExc_OSError;
  if (error.code() == Code::BadInput || error.code() == Code::Corrupt) kind = PyExc_ValueError;
  if (error.code() == Code::NotFound) kind = PyExc_FileNotFoundError;
  if (error.code() == Code::Denied) kind = PyExc_PermissionError;
  PyErr_SetString(kind, error.message().c_str());
  throw py::error_already_set();
}

/// Runs `call` on the real disk without the GIL.
template <typename Call>
auto on_disk(Call call) {
  auto result = [&] {
    const py::gil_scoped_release released;
    const auto world = world::make_real_world();
    return call(world->disk());
  }();
  if (!result) raise(result.error());
  return *std::move(result);
}

/// Two at least: with one, a read could not wait for the disk while a block is checked.
unsigned threads() { return std::clamp(world::usable_cpus(), 2U, kThreadsMax); }

py::list listed(const std::vector<store::TensorInfo>& tensors) {
  py::list list;
  for (const store::TensorInfo& each : tensors) {
    list.append(py::make_tuple(each.name, each.dtype, each.shape, each.begin, each.end));
  }
  return list;
}

/// Bytes that have been read or written, for whoever draws a bar.
using Counter = std::atomic<std::uint64_t>;

py::tuple loaded_tuple(store::LoadedTensors loaded) {
  const py::list tensors = listed(loaded.tensors);
  return py::make_tuple(loaded.file.header.metadata, tensors, std::make_unique<AlignedBytes>(std::move(loaded.block)));
}

py::tuple load_tensors(const std::string& path, const std::optional<std::vector<std::string>>& names, bool checked,
                       Counter* done) {
  const store::ReadPolicy policy{.threads = threads(), .checked = checked, .done = done};
  return loaded_tuple(on_disk([&](world::Disk& disk) { return store::load_tensor_file(disk, path, names, policy); }));
}

using SliceOf = std::pair<std::string, std::vector<std::pair<std::uint64_t, std::uint64_t>>>;

py::tuple load_slices(const std::string& path, const std::vector<SliceOf>& given, bool checked, Counter* done) {
  const store::ReadPolicy policy{.threads = threads(), .checked = checked, .done = done};
  std::vector<store::TensorSlice> slices;
  for (const auto& [name, ranges] : given) {
    store::Box box;
    for (const auto& [begin, end] : ranges) {
      box.begin.push_back(begin);
      box.shape.push_back(end - begin);
    }
    slices.push_back({name, std::move(box)});
  }
  return loaded_tuple(
      on_disk([&](world::Disk& disk) { return store::load_tensor_slices(disk, path, slices, policy); }));
}

void load_into(const std::string& path, const py::list& tensors, bool checked, Counter* done) {
  const store::ReadPolicy policy{.threads = threads(), .checked = checked, .done = done};
  std::vector<py::buffer_info> held;
  std::vector<store::TensorPlacement> places;
  for (const py::handle& each : tensors) {
    const auto tensor = py::cast<py::tuple>(each);
    const py::buffer_info& info = held.emplace_back(py::cast<py::buffer>(tensor[3]).request(/*writable=*/true));
    places.push_back(
        {py::cast<std::string>(tensor[0]), py::cast<std::string>(tensor[1]),
         py::cast<std::vector<std::uint64_t>>(tensor[2]),
         std::span(static_cast<std::byte*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize))});
  }
  on_disk([&](world::Disk& disk) { return store::load_tensors_into(disk, path, places, policy); });
}

/// A stream and the world that its file is of.
class Stream {
 public:
  Stream(const std::string& path, const std::optional<std::vector<std::string>>& names, std::uint64_t window_bytes,
         bool checked) {
    auto opened = [&] {
      const py::gil_scoped_release released;
      return store::TensorStream::open(world_->disk(), path, names,
                                       {.window_bytes = window_bytes, .threads = threads(), .checked = checked});
    }();
    if (!opened) raise(opened.error());
    stream_ = *std::move(opened);
  }

  ~Stream() {
    const py::gil_scoped_release released;
    stream_.reset();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  std::map<std::string, std::string> metadata() const { return stream_->about().header.metadata; }

  /// (name, dtype, shape, first byte, one past the last), block; None at the end.
  py::object next() {
    auto next = [&] {
      const py::gil_scoped_release released;
      return stream_->next();
    }();
    if (!next) raise(next.error());
    if (!*next) return py::none();
    const store::TensorInfo& tensor = (*next)->tensor;
    return py::make_tuple(py::make_tuple(tensor.name, tensor.dtype, tensor.shape, tensor.begin, tensor.end),
                          std::make_unique<AlignedBytes>(std::move((*next)->memory)));
  }

  void stop() { stream_->stop(); }

 private:
  std::unique_ptr<world::World> world_ = world::make_real_world();
  std::unique_ptr<store::TensorStream> stream_;
};

py::tuple tensor_header(const std::string& path) {
  const auto file = on_disk([&](world::Disk& disk) { return store::read_tensor_file(disk, path); });
  return py::make_tuple(file.header.metadata, listed(file.header.tensors), file.header.data_begin,
                        file.checksums.has_value());
}

bool verify_tensors(const std::string& path) {
  return on_disk([&](world::Disk& disk) { return store::verify_tensor_file(disk, path, threads()); })
      .checksums.has_value();
}

void save_tensors(const std::string& path, const py::list& tensors, std::map<std::string, std::string> metadata,
                  Counter* done) {
  static std::atomic<unsigned> saves = 0;
  const std::string aside = ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(++saves);
  const TensorList given(tensors);
  on_disk([&](world::Disk& disk) {
    return store::save_tensor_file(disk, path, given.all(), std::move(metadata), threads(), aside, done);
  });
}

}  // namespace

void bind_tensor_files(py::module_& module) {
  py::class_<AlignedBytes>(module, "Block", py::buffer_protocol()).def_buffer([](AlignedBytes& block) {
    const std::span<std::byte> bytes = block.all();
    return py::buffer_info(reinterpret_cast<std::uint8_t*>(bytes.data()), static_cast<py::ssize_t>(bytes.size()));
  });
  py::class_<Counter>(module, "Counter")
      .def(py::init([] { return std::make_unique<Counter>(0); }))
      .def("value", [](const Counter& counter) { return counter.load(); });
  py::class_<Stream>(module, "Stream")
      .def(py::init<const std::string&, const std::optional<std::vector<std::string>>&, std::uint64_t, bool>())
      .def("metadata", &Stream::metadata)
      .def("next", &Stream::next)
      .def("stop", &Stream::stop);
  module.def("load_tensors", &load_tensors, py::arg(), py::arg(), py::arg() = true, py::arg() = nullptr);
  module.def("load_slices", &load_slices);
  module.def("load_into", &load_into);
  module.def("tensor_header", &tensor_header);
  module.def("verify_tensors", &verify_tensors);
  module.def("save_tensors", &save_tensors, py::arg(), py::arg(), py::arg(), py::arg() = nullptr);
  module.def("keep_memory", [](std::uint64_t bytes) { world::memory_pool().keep_at_most(bytes); });
  module.def("kept_memory", [] { return world::memory_pool().kept_bytes(); });
}

}  // namespace holdfast::python
