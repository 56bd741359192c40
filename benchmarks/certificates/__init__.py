"""Certificates and automatic sizes: do they hold what they promise?"""
