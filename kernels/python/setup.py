"""The wheel has a library inside, so that it is for one platform; but no module of one Python's ABI, so that it is for all of
them. tools/package/wheels puts the library beside __init__.py before."""

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


class ForEveryPython(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=WithLibrary, cmdclass={"bdist_wheel": ForEveryPython})
