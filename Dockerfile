# docker build -t sheaf . && docker run --rm -v "$PWD:/work" sheaf run /usr/share/sheaf/configs/demo.yaml
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make
COPY . /sheaf
RUN make -C /sheaf package

FROM debian:12-slim
RUN --mount=type=bind,from=build,source=/sheaf/build/package,target=/package dpkg -i /package/*.deb
WORKDIR /work
ENTRYPOINT ["sheaf"]
