# Stands in for rayproject/ray:VERSION-py311-cpu where that cannot be fetched: what docker/Dockerfile and a cluster's
# files expect of it. User `ray` (1000, of the group `users`) who may sudo, Python in /home/ray/anaconda3, first on the
# path, with Ray installed; no entry point. The published one is Ubuntu with Conda's Python.
FROM localhost/warmband-debian:bookworm
ARG RAY
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends netbase openssh-client procps python3 python3-venv rsync sudo tzdata \
 && apt-get clean && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --shell /bin/bash --uid 1000 --gid 100 ray \
 && usermod --append --groups sudo ray \
 && echo 'ray ALL=NOPASSWD: ALL' >> /etc/sudoers
USER 1000
ENV HOME=/home/ray LANG=C.UTF-8 LC_ALL=C.UTF-8 TZ=America/Los_Angeles PATH=/home/ray/anaconda3/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /home/ray
RUN python3 -m venv anaconda3 && python -m pip install --no-cache-dir "ray[default]==$RAY"
