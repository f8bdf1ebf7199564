# docker build -t errcomp . && docker run --rm -v "$PWD:/data" errcomp audit results.csv
FROM python:3.12-slim
COPY . /src
# Pictures, workbooks and zstd; no compiler and no GPU library is needed.
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[figures,formats]" && rm -r /src
RUN useradd --create-home errcomp
USER errcomp
WORKDIR /data
ENTRYPOINT ["errcomp"]
CMD ["--help"]
